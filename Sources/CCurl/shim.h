#pragma once
#include <curl/curl.h>

// curl_easy_setopt and curl_easy_getinfo are variadic; one typed door per kind of argument.
static inline CURLcode rushes_setopt_long(CURL *h, CURLoption o, long v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode rushes_setopt_offset(CURL *h, CURLoption o, curl_off_t v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode rushes_setopt_string(CURL *h, CURLoption o, const char *v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode rushes_setopt_pointer(CURL *h, CURLoption o, void *v) { return curl_easy_setopt(h, o, v); }

typedef size_t (*rushes_transfer_fn)(char *, size_t, size_t, void *);
typedef int (*rushes_progress_fn)(void *, curl_off_t, curl_off_t, curl_off_t, curl_off_t);
typedef int (*rushes_seek_fn)(void *, curl_off_t, int);
static inline CURLcode rushes_setopt_transfer(CURL *h, CURLoption o, rushes_transfer_fn f) { return curl_easy_setopt(h, o, f); }
static inline CURLcode rushes_setopt_progress(CURL *h, rushes_progress_fn f) { return curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, f); }
static inline CURLcode rushes_setopt_seek(CURL *h, rushes_seek_fn f) { return curl_easy_setopt(h, CURLOPT_SEEKFUNCTION, f); }

static inline CURLcode rushes_getinfo_long(CURL *h, CURLINFO i, long *v) { return curl_easy_getinfo(h, i, v); }
static inline CURLMcode rushes_multi_setopt_long(CURLM *h, CURLMoption o, long v) { return curl_multi_setopt(h, o, v); }

// msg->data is a union.
static inline CURLcode rushes_message_result(CURLMsg *m) { return m->data.result; }
