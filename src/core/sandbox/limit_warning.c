/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sandbox/limit_warning.h"

#include "base/format.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/sysinfo.h>
#include <unistd.h>

/* How many processors the machine has, if it may be fewer than that: to ask for it takes a file to be read. */
static long cores_for(uint64_t cpu_millis)
{
	cpu_set_t usable;

	if (sched_getaffinity(0, sizeof(usable), &usable) == 0 &&
		(uint64_t)CPU_COUNT(&usable) * 1000 >= cpu_millis)
		return CPU_COUNT(&usable);
	return sysconf(_SC_NPROCESSORS_ONLN);
}

static uint64_t machine_bytes;

static void read_machine(void)
{
	struct sysinfo machine;

	machine_bytes =
		sysinfo(&machine) == 0 ? (uint64_t)machine.totalram * machine.mem_unit : UINT64_MAX;
}

/* Asked for once: the kernel counts the pages of all block devices for the answer, and each sandbox has one. */
static uint64_t memory_of_machine(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_machine);
	return machine_bytes;
}

size_t limit_warning_list(
	const struct resources *resources, char ret_texts[LIMIT_WARNING_MAX][LIMIT_WARNING_LEN])
{
	long cores = cores_for(resources->cpu_millis);
	char asked[FORMAT_SIZE_LEN], there[FORMAT_SIZE_LEN];
	uint64_t bytes = memory_of_machine();
	size_t count = 0;

	if (cores > 0 && resources->cpu_millis > (uint64_t)cores * 1000)
		snprintf(ret_texts[count++], LIMIT_WARNING_LEN,
			"a limit of %g cores limits nothing: the machine has %ld",
			(double)resources->cpu_millis / 1000, cores);
	if (resources->memory_bytes > bytes) {
		format_size(resources->memory_bytes, asked);
		format_size(bytes, there);
		snprintf(ret_texts[count++], LIMIT_WARNING_LEN,
			"a memory limit of %s limits nothing: the machine has %s", asked, there);
	}
	return count;
}
