/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to do about a failure, in words of this program. The daemon's remedies name routes of its
 * API, because most of its clients know nothing else.
 */
#pragma once

#include <stddef.h>

/* The message with the option in the place of the field that it begins with, if there is one of that meaning. */
void hint_from_message(const char *message, char *ret_message, size_t size);

/* Puts `by` in the place of a word, if there is room for all of it. */
void hint_replace(char *text, size_t size, const char *word, const char *by);

/* Writes the remedy with commands in the place of routes; "" if it names one that no command stands for. */
void hint_from_remedy(const char *remedy, char *ret_hint, size_t size);
