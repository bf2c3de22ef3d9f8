#pragma once
// The low-level SHA-256 alone has a state that can be kept and gone on from; OpenSSL 3 calls it deprecated, and has nothing in its place.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
