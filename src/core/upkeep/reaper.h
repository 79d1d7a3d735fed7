/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The reaper's thread: settles the lost, stops the idle, ends what outlived its time. */
void *reaper_run(void *engine);
