/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/report.h"

#include "wire/agent.h"
#include "wire/pack.h"

void report_started(struct daemon_link *link, uint32_t id, pid_t pid)
{
	struct buf *out = daemon_link_begin(link, AGENT_STARTED, id, 4);

	if (out)
		pack_u32(out, (uint32_t)pid);
}

void report_failed(struct daemon_link *link, uint32_t id, int stage, int errnum)
{
	struct buf *out = daemon_link_begin(link, AGENT_FAILED, id, 1 + 4);

	if (!out)
		return;
	pack_u8(out, (uint8_t)stage);
	pack_u32(out, (uint32_t)errnum);
}

void report_input(struct daemon_link *link, uint32_t id, uint64_t taken, uint64_t received)
{
	struct buf *out = daemon_link_begin(link, AGENT_STDIN_ACK, id, 2 * 8);

	if (!out)
		return;
	pack_u64(out, taken);
	pack_u64(out, received);
}

static uint32_t clip(uint64_t count)
{
	return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

bool report_exited(
	struct daemon_link *link, uint32_t id, uint64_t output_bytes, const struct report_end *end)
{
	struct buf *out = daemon_link_begin(
		link, AGENT_EXITED, id, 4 + 4 * 8 + 3 * 4 + 4 + end->denied.count * 2 * 4);

	if (!out)
		return false;
	pack_u32(out, end->wait_status);
	pack_u64(out, output_bytes);
	pack_u64(out, end->cpu_us);
	pack_u64(out, end->peak_bytes);
	pack_u64(out, end->duration_us);
	pack_u32(out, clip(end->during.oom_kills));
	pack_u32(out, clip(end->during.refused_forks));
	pack_u32(out, end->flags);
	pack_u32(out, end->denied.count);
	for (uint32_t i = 0; i < end->denied.count; i++) {
		pack_u32(out, end->denied.calls[i].number);
		pack_u32(out, end->denied.calls[i].times);
	}
	return true;
}

bool report_survivors(struct daemon_link *link, uint32_t id, uint32_t count)
{
	struct buf *out = daemon_link_begin(link, AGENT_SURVIVORS, id, 4);

	if (out)
		pack_u32(out, count);
	return out;
}

void report_used(struct daemon_link *link, uint32_t id, uint64_t cpu_us)
{
	struct buf *out = daemon_link_begin(link, AGENT_USED, id, 8);

	if (out)
		pack_u64(out, cpu_us);
}
