/* SPDX-License-Identifier: Apache-2.0 */
/* The WWW-Authenticate header with which a registry says where tokens are to be had. */
#pragma once

#include "base/err.h"

#define BEARER_TEXT_MAX 1024

struct bearer_challenge {
	char realm[BEARER_TEXT_MAX]; /* address of the token server */
	char service[BEARER_TEXT_MAX];
	char scope[BEARER_TEXT_MAX];
};

/* Reads the value of a header. -ENOENT: it asks for another scheme than Bearer; -EINVAL: it cannot be read. */
int bearer_challenge_parse(const char *value, struct bearer_challenge *ret_challenge) must_check;
