/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets that we give out: 256 random bits behind a prefix that says what they are. We keep their
 * SHA-256 alone. A slow hash would protect what people can remember, which these are not; and finding a
 * secret by its hash tells nobody by its time how much of a guess was right.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define SECRET_TEXT_MAX	    128
#define SECRET_HASH_LEN	    32
#define SECRET_TOKEN_PREFIX "slt_"
#define SECRET_LINK_PREFIX  "slp_"
#define SECRET_E2B_PREFIX   "e2b_" /* a token in the form that clients of that protocol demand */

/* The first label of a host name: 260 bits in 52 small letters and digits. */
#define SECRET_FRAME_PREFIX "f-"
#define SECRET_FRAME_LEN    54

/* In 64 digits; or, for what stands in an address, in 43 characters that may. */
void secret_make(const char *prefix, char text[SECRET_TEXT_MAX]);
void secret_make_short(const char *prefix, char text[SECRET_TEXT_MAX]);

void secret_make_frame(char text[SECRET_TEXT_MAX]);

/* Whether it has the form of the tokens that secret_make() makes. */
bool secret_is_token(const char *text);

/* Whether these bytes have the form of the links that secret_make_short() makes. */
bool secret_is_link(const char *text, size_t len);

void secret_hash(const char *text, unsigned char hash[SECRET_HASH_LEN]);
