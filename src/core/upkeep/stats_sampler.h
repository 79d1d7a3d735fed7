/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples what the running sandboxes use: every ten seconds for their history (core/engine/stats_history.h), and every two
 * for those whose owner follows the topic `stats`, however many do; they are told as `stats.sample`. It wakes nobody.
 */
#pragma once

/* What its thread runs, until the engine is closed. */
void *stats_sampler_run(void *engine);
