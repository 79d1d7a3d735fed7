/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The services that apps use beside: one row for each says how it is recognized, and which member of the sandbox it
 * becomes (core/sandbox/member.h). What an app says of them is hostile input like all of its files.
 */
#pragma once

#include "launch/app/file_set.h"
#include "model/sandbox/member_spec.h"

#define APP_SERVICES_MAX     2
#define APP_SERVICE_TEXT_MAX 128 /* with NUL */

struct app_service {
	const char *name; /* as detection and sandlot.json call it */
	enum member_role role;
	const char *template_name;
	const char *variable; /* by which an app is told where it is */
	uint16_t port;
	uint64_t memory_bytes;
};

extern const struct app_service app_services[APP_SERVICES_MAX];

/* The row of a name; NULL if there is none. */
const struct app_service *app_service_find(const char *name);

/* A directory of an app whose packages are known. */
struct app_service_place {
	const char *dir, *manifest, *entry; /* manifest: NULL if there is none */
	bool (*needs)(const void *arg, const char *package);
	const void *arg;
};

/* Adds what shows there that the app uses services to a list of {"name", "confidence", "evidence"}. */
void app_service_detect(
	json_t *list, const struct file_set *set, const struct app_service_place *place);

/* Makes the list what somebody has said: an array of names. ERR_INVALID if it is none. NULL: nothing was said. */
int app_service_choose(json_t *list, const json_t *names, const char *source, struct err *err)
	must_check;

/* What an address of a service says. */
struct app_service_address {
	bool is_local; /* it is the usual port of this machine, where a member would be */
	char user[APP_SERVICE_TEXT_MAX], password[APP_SERVICE_TEXT_MAX],
		database[APP_SERVICE_TEXT_MAX];
};

/* Whether it could be read. */
bool app_service_address_read(const struct app_service *service, const char *url,
	struct app_service_address *ret_address);
