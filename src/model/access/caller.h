/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who asks for something: whose objects are meant, and what this caller may do with them. Every way
 * into the daemon (src/api is one) finds out who it is, and the use cases in src/core decide by it.
 */
#pragma once

#include "model/access/scope.h"
#include "model/sandbox/sandbox_record.h"

struct caller {
	struct owner owner;
	unsigned scopes; /* model/access/scope.h */
};
