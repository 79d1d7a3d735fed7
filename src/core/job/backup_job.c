/* SPDX-License-Identifier: Apache-2.0 */
#include "core/job/backup_job.h"

#include "base/format.h"
#include "core/engine/backups.h"

#include <errno.h>

int backup_job_run(struct job *job, void *backups, struct err *err)
{
	char name[STORE_BACKUP_NAME_MAX];
	char size[FORMAT_SIZE_LEN];
	uint64_t bytes;
	int r;

	/* The database writes its copy in one go: from there on it cannot be stopped. */
	if (job_must_stop(job))
		return -ECANCELED;
	job_progress(job, 0, 0, "writing");
	r = backups_write(backups, name, &bytes, err);
	if (r < 0)
		return r;
	format_size(bytes, size);
	job_log(job, "wrote %s, %s", name, size);
	job_progress(job, bytes, bytes, "written");
	job_set_result(job, "backup", json_string(name));
	return 0;
}
