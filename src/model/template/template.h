/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sandboxes start from. A template also says by which profile their system calls are judged: who
 * creates a sandbox chooses a template, and never opens more than the operator offers.
 */
#pragma once

#include "base/err.h"
#include "model/sandbox/sandbox_record.h"

#include <stdbool.h>

enum template_profile {
	TEMPLATE_PROFILE_DEFAULT,
	TEMPLATE_PROFILE_BROWSER, /* a browser's own sandbox works, at the price of a larger kernel */
	TEMPLATE_PROFILE_STRICT, /* less than the default: no tracing, no netlink */
};

struct template
{
	const char *name;
	enum template_profile profile;
};

/* The template of that name; NULL if there is none. */
const struct template *template_find(const char *name);

/* What people call the profile. */
const char *template_profile_name(enum template_profile profile);
int template_profile_parse(const char *name, enum template_profile *ret_profile) must_check;

/* The profile of a sandbox: as the template says that it was made of, or the version of it that it has. */
enum template_profile template_profile_of(const struct sandbox_record *record);

/* Whether a list ("host,browser") offers the template. */
bool template_is_offered(const char *list, const char *name);

/* Whether every name of the list is one of a template: 0, or ERR_INVALID. */
int template_check_list(const char *list, struct err *err) must_check;
