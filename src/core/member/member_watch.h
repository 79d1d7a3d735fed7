/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watch over members: one thread that asks after their health, lets the start commands of those go on whose
 * dependencies are healthy, and starts members again that died while their sandbox runs.
 */
#pragma once

/* The thread. */
void *member_watch_run(void *engine);
