/* SPDX-License-Identifier: Apache-2.0 */
/* How many bytes a client has sent, for whoever serves it and sees neither its socket nor the cipher. Any thread. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct meter {
	atomic_uint refs;
	atomic_uint_fast64_t bytes;
};

/* With two references: of who counts and of who reads. */
struct meter *meter_new(void);
void meter_unref(struct meter *meter);
