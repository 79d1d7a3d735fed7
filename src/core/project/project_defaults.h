/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sandboxes of a project are unless they are asked for otherwise. New ones take all of it; the packages and
 * variables of environment_config are looked at again at every start and every command.
 */
#pragma once

#include "core/project/projects.h"
#include "model/sandbox/sandbox_port.h"
#include "model/sandbox/sandbox_spec.h"
#include "model/template/dependency_set.h"

/* A request for a sandbox with what its project adds. Large: on the heap. */
struct project_defaults {
	struct sandbox_spec spec;
	struct project_record record;
	struct port_spec ports[SANDBOX_PORTS_MAX];
	const char *packages[2 * DEPENDENCY_PACKAGES_MAX];
};

/*
 * Fills what a request leaves open by what its project says, if that is there; nothing is made. ERR_NOT_FOUND if it
 * has the form of an id and is not there. The spec is borrowed.
 */
int project_defaults_fill(struct projects *projects, const struct owner *owner,
	const struct sandbox_spec *spec, struct project_defaults *ret_defaults, struct err *err)
	must_check;
void project_defaults_fini(struct project_defaults *defaults);

/* The variables that the project of a sandbox gives to its commands; a new reference, {} for none. */
json_t *project_defaults_env(struct projects *projects, const struct sandbox_record *record);

/* A new set of the packages that the project of a sandbox wants it to have. */
json_t *project_defaults_packages(struct projects *projects, const struct sandbox_record *record);
