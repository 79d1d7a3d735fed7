/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A build of a template: a job of the kind "template", which makes a source (template_source.h) into layers
 * and a stack of them, and then the template's next version. What is there already is not made again, so
 * after a restart of the daemon it goes on. The version before stays in use until the next one is there.
 */
#pragma once

#include "core/template/build/template_build.h"
#include "core/template/templates.h"

/* The row of its kind; `context` is the struct templates. */
#define TEMPLATE_JOB(templates_)                                                                   \
	{                                                                                          \
		.name = TEMPLATE_JOB_KIND, .on_restart = JOB_RESTART_CONTINUE,                     \
		.is_ready = templates_are_attached, .run = template_job_run,                       \
		.ended = template_job_ended, .context = (templates_)                               \
	}

int template_job_run(struct job *job, void *templates, struct err *err) must_check;

/* Makes the sandboxes that waited for it, or says that they cannot be made. */
void template_job_ended(struct job *job, void *templates);
