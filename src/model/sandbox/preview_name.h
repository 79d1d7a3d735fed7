/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host names of previews: s-<id>-<port>.<domain>, and <port>-<id>.<domain> for clients that know that form. A frame
 * in a page of another origin has a name of its own, f-<secret>.<domain>, which opens one preview without a cookie.
 */
#pragma once

#include "model/id.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Reads the host of a request ("s-01k9...-3000.preview.localhost:9091", in any case, with or without its port).
 * -ENOENT if it does not lie below the domain, -EINVAL if it does but names no preview: exactly one label, exactly
 * one of the two forms, a port without leading zeros.
 */
int preview_name_parse(
	const char *host, const char *domain, char ret_id[ID_LEN + 1], uint16_t *ret_port);

/* The label of a frame ("f-" and letters and digits) in the host of a request, in small letters; errors as above. */
#define PREVIEW_NAME_LABEL_MAX 64 /* with NUL */

int preview_name_parse_frame(
	const char *host, const char *domain, char ret_label[PREVIEW_NAME_LABEL_MAX]);

/* Whether a host is the domain itself, with or without a port. */
int preview_name_is_domain(const char *host, const char *domain);

/* "s-<id>-<port>.<domain>". */
void preview_name_format(
	const char *id, unsigned port, const char *domain, char *name, size_t size);
