/* SPDX-License-Identifier: Apache-2.0 */
#include "core/environment.h"

#include "core/network.h"
#include "wire/egress.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define DEFAULT_TERM "xterm-256color"
#define NO_PROXY     "localhost,127.0.0.1,::1,0.0.0.0,sandbox,.localhost"

/* For programs that ask for one by name and so spare themselves the question for it. */
static void add_proxy(json_t *env, const json_t *network)
{
	static const char *const names[] = {
		"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"};
	auto_free char *url = mem_printf("http://127.0.0.1:%d", EGRESS_PROXY_PORT);

	if (!network_leads_out(network))
		return;
	for (size_t i = 0; i < array_len(names); i++)
		json_object_set_new(env, names[i], json_string(url));
	json_object_set_new(env, "no_proxy", json_string(NO_PROXY));
	json_object_set_new(env, "NO_PROXY", json_string(NO_PROXY));
}

char **environment_make(struct sandbox *sandbox, const json_t *own, uint32_t uid, bool is_pty)
{
	const char *user = uid == 0 ? "root" : uid == ENVIRONMENT_UID ? "sandbox" : "nobody";
	const char *home = uid == 0 ? "/root" : uid == ENVIRONMENT_UID ? "/home/sandbox" : "/tmp";
	json_t *env = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "PATH", DEFAULT_PATH, "HOME",
		home, "USER", user, "LOGNAME", user, "SHELL", "/bin/bash", "LANG", "C.UTF-8");
	struct sandbox_record record;
	char **entries;
	const char *name;
	json_t *value;
	size_t i = 0;

	if (is_pty)
		json_object_set_new(env, "TERM", json_string(DEFAULT_TERM));
	sandbox_read(sandbox, &record);
	add_proxy(env, record.network);
	json_object_update(env, record.env);
	sandbox_record_fini(&record);
	if (own)
		json_object_update(env, (json_t *)own);
	entries = mem_new((json_object_size(env) + 1) * sizeof(char *));
	json_object_foreach(env, name, value) entries[i++] =
		mem_printf("%s=%s", name, json_string_value(value));
	json_decref(env);
	return entries;
}

void environment_free(char **entries)
{
	for (char **entry = entries; entry && *entry; entry++)
		free(*entry);
	free(entries);
}
