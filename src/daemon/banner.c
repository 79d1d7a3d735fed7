/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/banner.h"

#include "base/data_dir.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void banner_address(const struct listener *listener, char address[BANNER_ADDRESS_MAX])
{
	const char *host = listener->host;

	if (strcmp(host, "0.0.0.0") == 0)
		host = "127.0.0.1";
	else if (strcmp(host, "[::]") == 0)
		host = "[::1]";
	snprintf(address, BANNER_ADDRESS_MAX, "%s:%u", host, listener->port);
}

/* How the command line is called from here: by name if it is in the path, else beside us. */
static void find_cli(char cli[PATH_MAX])
{
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	snprintf(cli, PATH_MAX, "sandlot");
	if (len < 0)
		return;
	self[len] = '\0';
	snprintf(cli, PATH_MAX, "%.*s/sandlot", PATH_MAX - 16, dirname(self));
	/* Installed: we are in sbin, it is in bin. A directory that only root may enter hides it from us, who are not
	 * root any more, but not from whoever started us. */
	if (access(cli, X_OK) < 0 && errno == ENOENT)
		snprintf(cli, PATH_MAX, "sandlot");
}

/* Until there is one, no command that needs a sandbox works. */
static void print_failure(const char *cli, const struct err *failure)
{
	printf("\nSandboxes cannot be served yet: %s.\n", failure->message);
	if (failure->remedy[0])
		printf("What to do: %s.\n", failure->remedy);
	printf("\n  %s doctor\n\n", cli);
	fflush(stdout);
}

void banner_print(const char *data_dir, const struct listener *listener, const char *code,
	const struct err *failure)
{
	bool is_default = strcmp(data_dir, DATA_DIR_OF_ROOT) == 0;
	char address[BANNER_ADDRESS_MAX];
	char cli[PATH_MAX];

	find_cli(cli);
	banner_address(listener, address);
	printf("\nSandlot %s serves %s://%s\nThe token is in %s/token.\n", SANDLOT_VERSION,
		listener_scheme(listener), address, data_dir);
	if (code[0])
		printf("The console, signed in once within 15 minutes:\n  %s://%s/login?code=%s\n",
			listener_scheme(listener), address, code);
	if (failure) {
		print_failure(cli, failure);
		return;
	}
	printf("\nTry, in another terminal:\n");
	/* The command line looks for token and address in the data directory. */
	if (!is_default)
		printf("  export SANDLOT_DATA_DIR=%s\n", data_dir);
	printf("  %s run -- python3 -c 'print(6*7)'\n"
	       "  %s create\n"
	       "  %s ls\n\n",
		cli, cli, cli);
	fflush(stdout);
}
