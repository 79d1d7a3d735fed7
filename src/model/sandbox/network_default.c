/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sandbox/network_default.h"

#include "model/sandbox/egress_rule.h"
#include "model/template/template.h"

#include <stdio.h>
#include <string.h>

const char *const network_modes[] = {"none", "allowlist", "internet", NULL};

#define TEMPLATE_MAX 64

struct entry {
	char template_name[TEMPLATE_MAX]; /* empty: for all */
	char value[EGRESS_RULE_MAX];
};

/* Takes the first entry off a list; false if there is none. One that is too long is left without a value. */
static bool next_entry(const char **list, struct entry *ret_entry)
{
	size_t len = strcspn(*list, ","), name_len;
	const char *equals = memchr(*list, '=', len), *value = equals ? equals + 1 : *list;

	if (!**list)
		return false;
	name_len = equals ? (size_t)(equals - *list) : 0;
	*ret_entry = (struct entry){0};
	if (name_len < TEMPLATE_MAX && len - name_len < EGRESS_RULE_MAX) {
		memcpy(ret_entry->template_name, *list, name_len);
		memcpy(ret_entry->value, value, len - (size_t)(value - *list));
	}
	*list += len + ((*list)[len] == ',');
	return true;
}

static const char *find_mode(const char *value)
{
	for (size_t i = 0; network_modes[i]; i++) {
		if (strcmp(network_modes[i], value) == 0)
			return network_modes[i];
	}
	return NULL;
}

static bool is_for(const struct entry *entry, const char *template_name)
{
	return strcmp(entry->template_name, template_name) == 0;
}

const char *network_default_mode(const struct network_default *settings, const char *template_name)
{
	const char *own = NULL, *general = NULL, *list = settings->modes;
	struct entry entry;

	while (next_entry(&list, &entry)) {
		if (is_for(&entry, template_name))
			own = find_mode(entry.value);
		else if (!entry.template_name[0])
			general = find_mode(entry.value);
	}
	return own ? own : general;
}

static json_t *rules_for(const char *list, const char *template_name)
{
	json_t *rules = NULL;
	struct entry entry;

	while (next_entry(&list, &entry)) {
		if (!is_for(&entry, template_name))
			continue;
		if (!rules)
			rules = json_array();
		json_array_append_new(rules, json_string(entry.value));
	}
	return rules;
}

json_t *network_default_rules(const struct network_default *settings, const char *template_name)
{
	json_t *own = rules_for(settings->rules, template_name);

	return own ? own : rules_for(settings->rules, "");
}

static int check_template(const struct entry *entry, struct err *err)
{
	return entry->template_name[0] && !template_find(entry->template_name)
		       ? err_set(err, ERR_INVALID, "there is no template \"%s\"",
				 entry->template_name)
		       : 0;
}

int network_default_check(const struct network_default *settings, struct err *err)
{
	const char *list = settings->modes;
	struct entry entry;
	int r = 0;

	while (r == 0 && next_entry(&list, &entry)) {
		r = check_template(&entry, err);
		if (r == 0 && !find_mode(entry.value))
			r = err_set(err, ERR_INVALID,
				"network must be none, allowlist or internet, not \"%s\"",
				entry.value);
	}
	if (r == 0 && !network_default_mode(settings, ""))
		r = err_set(err, ERR_INVALID, "network must have a mode for all templates");
	list = settings->rules;
	while (r == 0 && next_entry(&list, &entry)) {
		r = check_template(&entry, err);
		if (r == 0 && !egress_rule_is_valid(entry.value))
			r = err_set(err, ERR_INVALID,
				"allow has \"%s\", which is no name, address or network",
				entry.value);
	}
	return r;
}

bool network_leads_out(const json_t *network)
{
	const char *mode = json_string_value(json_object_get(network, "mode"));

	return (mode && strcmp(mode, "none") != 0) ||
	       json_array_size(json_object_get(network, "secrets")) > 0;
}
