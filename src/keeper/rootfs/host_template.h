/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The `host` template: a small root directory made from tables, into which the host's /usr is
 * mounted read-only. Nothing is downloaded, and of the host's /etc only files are copied that a
 * list names, that are world-readable, and that programs in /usr need (alternatives, CA
 * certificates, the linker's cache, locale and language settings).
 */
#pragma once

#include "keeper/disk/storage.h"

/* Makes templates/host anew and opens it. */
int host_template_make(const struct storage *storage, int *ret_fd, struct err *err) must_check;
