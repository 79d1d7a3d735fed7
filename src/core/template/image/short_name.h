/* SPDX-License-Identifier: Apache-2.0 */
/* Short names of images, from the setting --short-names: "NAME=REFERENCE,...". They go before those of the catalogue. */
#pragma once

#include "image/image_reference.h"
#include "model/template/template_record.h"

struct short_name {
	char name[TEMPLATE_NAME_MAX];
	char image[IMAGE_REFERENCE_MAX + 1];
};

/* Whether every entry of the setting is of that form. */
int short_name_check(const char *setting, struct err *err) must_check;

/* The one of that number, from 0 on; false if there are not so many. */
bool short_name_get(const char *setting, unsigned number, struct short_name *ret_name);

/* The one of a name; false if there is none. */
bool short_name_find(const char *setting, const char *name, struct short_name *ret_name);
