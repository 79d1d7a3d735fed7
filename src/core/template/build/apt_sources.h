/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the host gets the packages of a Debian release from: its own sources.list and files in sources.list.d, in
 * both of apt's forms. They are the operator's. Sources with a password in their address are left out, since what
 * is made of these ends up in templates.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#define APT_SUITE_MAX 32

/*
 * Lines of a sources.list, a new array: "deb http://deb.debian.org/debian bookworm main". They are of the suite and of
 * its updates and security. Where the host has none of them, Debian's own.
 */
json_t *apt_sources_of_host(const char *etc_apt, const char *suite);

/* Whether a text can be the name of a suite. */
bool apt_sources_is_suite(const char *text);

/* Reads the text of one file into the array; is_deb822: of a file *.sources. For tests. */
void apt_sources_read(const char *text, bool is_deb822, const char *suite, json_t *lines);
