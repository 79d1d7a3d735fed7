/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sandbox/sandbox_port.h"

#include <string.h>

#define PORT_MAX 65535

static bool is_number(const json_t *value)
{
	return json_is_integer(value) && json_integer_value(value) >= 1 &&
	       json_integer_value(value) <= PORT_MAX;
}

static bool is_prefix(const json_t *value)
{
	const char *text = json_string_value(value);

	return text && (strcmp(text, "keep") == 0 || strcmp(text, "strip") == 0);
}

static bool keeps(const json_t *entry)
{
	const char *prefix = json_string_value(json_object_get(entry, "prefix"));

	return prefix && strcmp(prefix, "keep") == 0;
}

uint16_t sandbox_port_number(const json_t *entry)
{
	const json_t *number = json_is_object(entry) ? json_object_get(entry, "port") : entry;

	return (uint16_t)json_integer_value(number);
}

static const char *check_entry(const json_t *entry)
{
	const json_t *is_public = json_object_get(entry, "public");
	const json_t *prefix = json_object_get(entry, "prefix");
	size_t known = 1;

	if (!json_is_object(entry))
		return is_number(entry) ? NULL : "must hold ports, whole numbers from 1 to 65535";
	if (!is_number(json_object_get(entry, "port")))
		return "has an entry without a port, a whole number from 1 to 65535";
	if (is_public && !json_is_boolean(is_public))
		return "has an entry whose public is neither true nor false";
	if (prefix && !is_prefix(prefix))
		return "has an entry whose prefix is neither keep nor strip";
	known += (is_public != NULL) + (prefix != NULL);
	return json_object_size(entry) > known ? "has an entry with more than port, public, prefix"
					       : NULL;
}

const char *sandbox_port_check(const json_t *ports)
{
	const json_t *entry, *other;
	size_t i, j;

	json_array_foreach((json_t *)ports, i, entry)
	{
		const char *wrong = check_entry(entry);

		if (wrong)
			return wrong;
		json_array_foreach((json_t *)ports, j, other)
		{
			if (j >= i)
				break;
			if (sandbox_port_number(entry) == sandbox_port_number(other))
				return "has a port twice";
		}
	}
	return NULL;
}

static json_t *shorten(const json_t *entry)
{
	json_t *number = json_integer(sandbox_port_number(entry)), *copy;

	if (!json_object_get(entry, "public") && !keeps(entry))
		return number;
	copy = json_deep_copy(entry);
	if (!keeps(entry))
		json_object_del(copy, "prefix");
	json_decref(number);
	return copy;
}

/* Where it stands among them; behind them all if it does not. */
static size_t position(const json_t *ports, uint16_t number)
{
	size_t i = 0;

	while (i < json_array_size(ports) &&
		sandbox_port_number(json_array_get(ports, i)) != number)
		i++;
	return i;
}

/* Copies what it takes from the change, which may belong to another thread's request. */
bool sandbox_port_change(json_t *ports, uint16_t number, const json_t *change)
{
	json_auto_t *changed = json_pack("{s:i}", "port", (int)number);
	json_auto_t *copy = json_deep_copy(change);
	size_t at = position(ports, number);
	json_t *entry = json_array_get(ports, at);

	if (!entry && at >= SANDBOX_PORTS_MAX)
		return false;
	if (json_is_object(entry))
		json_object_update(changed, entry);
	json_object_update(changed, copy);
	if (entry)
		json_array_set_new(ports, at, shorten(changed));
	else
		json_array_append_new(ports, shorten(changed));
	return true;
}

bool sandbox_port_find(
	const struct sandbox_record *record, uint16_t number, struct sandbox_port *ret_port)
{
	json_t *entry;
	size_t i;

	json_array_foreach(record->ports, i, entry)
	{
		const json_t *is_public = json_object_get(entry, "public");

		if (number != 0 && sandbox_port_number(entry) != number)
			continue;
		*ret_port = (struct sandbox_port){.number = sandbox_port_number(entry),
			.is_public = is_public ? json_is_true(is_public) : !record->is_private,
			.keeps_prefix = keeps(entry)};
		return true;
	}
	return false;
}

int sandbox_port_not_found(const char *id, uint16_t number, struct err *err)
{
	return err_explain(err, ERR_NOT_FOUND, "port_not_found",
		"give it one: PATCH /v1/sandboxes/{id}/ports/{port}, or sandlot open",
		"port %u of sandbox %s has no preview", number, id);
}
