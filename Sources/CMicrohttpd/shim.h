#pragma once
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <microhttpd.h>

// MHD_start_daemon, MHD_get_daemon_info and MHD_get_connection_info are variadic; one typed door for each use.

struct rushes_mhd_bounds {
    unsigned threads;
    unsigned timeout_seconds;
    unsigned connections;
    size_t connection_memory;
};

static inline struct MHD_Daemon *rushes_mhd_start(int listening, MHD_AccessHandlerCallback handler, void *context,
                                                  MHD_RequestCompletedCallback completed,
                                                  struct rushes_mhd_bounds bounds) {
    unsigned flags = MHD_USE_EPOLL | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    return MHD_start_daemon(flags, 0, NULL, NULL, handler, context,
                            MHD_OPTION_LISTEN_SOCKET, listening,
                            MHD_OPTION_NOTIFY_COMPLETED, completed, context,
                            MHD_OPTION_THREAD_POOL_SIZE, bounds.threads,
                            MHD_OPTION_CONNECTION_TIMEOUT, bounds.timeout_seconds,
                            MHD_OPTION_CONNECTION_LIMIT, bounds.connections,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, bounds.connection_memory,
                            MHD_OPTION_END);
}

/// The connection's socket, or -1.
static inline int rushes_mhd_descriptor(struct MHD_Connection *c) {
    const union MHD_ConnectionInfo *i = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    return i ? i->connect_fd : -1;
}

/// The user at the other end of a Unix socket (struct ucred is hidden without _GNU_SOURCE): 0, or the negated errno.
static inline int rushes_peer_user(int fd, uint32_t *uid) {
    struct { int32_t pid; uint32_t uid; uint32_t gid; } peer;
    socklen_t n = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n)) return -errno;
    *uid = peer.uid;
    return 0;
}

static inline int rushes_is_unix_socket(int fd) {
    struct sockaddr_storage a;
    socklen_t n = sizeof a;
    return getsockname(fd, (struct sockaddr *)&a, &n) == 0 && a.ss_family == AF_UNIX;
}
