/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/input/question.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

bool question_has_listener(void)
{
	return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

int question_ask(const char *question, struct err *err)
{
	char answer[16] = "";

	if (!question_has_listener())
		return err_explain(err, ERR_INVALID, "not_confirmed", "--force asks nothing",
			"nobody is there to ask: %s", question);
	fprintf(stderr, "%s [y/N] ", question);
	if (!fgets(answer, sizeof(answer), stdin))
		answer[0] = '\0';
	answer[strcspn(answer, "\n")] = '\0';
	if (strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0)
		return 0;
	return err_explain(err, ERR_INVALID, "not_confirmed", NULL, "nothing was done");
}
