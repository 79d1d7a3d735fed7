/* SPDX-License-Identifier: Apache-2.0 */
/* Gives a waiting sandbox to whoever creates one like it: an owner, and all that the create asks for. */
#pragma once

#include "core/pool/pool.h"

/*
 * 0: it is the draft's owner's, and all that the draft says: name, environment, limits, labels, network with secrets,
 * ports, start commands. 1: there is none for this draft, which is to be created. An error is one that a create would
 * have too (a quota, a name that is taken).
 */
int pool_claim(struct engine *engine, const struct sandbox_record *draft,
	struct sandbox **ret_sandbox, struct err *err) must_check;
