/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/host_report.h"

#include "base/fd.h"
#include "base/mem.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>

int host_report_open(int root_fd, int64_t now_ms, struct host_report **ret_report, struct err *err)
{
	struct host_report *report;
	int own = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);

	assert(host_check_count <= HOST_REPORT_MAX);
	if (own < 0)
		return err_sys(err, "keep the root directory open");
	report = mem_new(sizeof(*report));
	host_check_init(&report->host, own);
	report->looked_ms = now_ms;
	for (size_t i = 0; i < host_check_count; i++)
		host_checks[i].look(&report->host, &report->findings[i]);
	*ret_report = report;
	return 0;
}

void host_report_close(struct host_report *report)
{
	if (!report)
		return;
	fd_close(report->host.root_fd);
	free(report);
}

void host_report_get(const struct host_report *report, size_t check, struct finding *ret)
{
	assert(check < host_check_count);
	*ret = (struct finding){0};
	if (host_checks[check].is_tried)
		*ret = report->findings[check];
	else
		host_checks[check].look(&report->host, ret);
}
