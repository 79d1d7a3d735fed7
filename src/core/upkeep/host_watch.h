/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches what the sandboxes take of the host: its memory, of which some are stopped when it runs short
 * (memory_pressure.h), and its disk, which they may not fill (disk_reserve.h).
 *
 * Each is a thread of its own, which looks every second. To stop a sandbox takes as long as its processes
 * take to end, and its owner decides that: so nobody can keep the disk from being watched by sandboxes that
 * are slow to stop, nor memory by sandboxes that the reaper stops.
 */
#pragma once

/* What the two threads run, until the engine is closed. */
void *host_watch_memory(void *engine);
void *host_watch_disk(void *engine);
