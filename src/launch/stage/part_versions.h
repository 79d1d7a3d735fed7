/* SPDX-License-Identifier: Apache-2.0 */
/* With what an app was launched: kept with the launch, so that runs can be compared. */
#pragma once

struct pipeline;

/*
 * Puts "versions" into the record of a launch: of Sandlot, the template, and what the sandbox says of itself: node, python
 * and the frameworks. What it does not say is left out; a launch does not fail by it.
 */
void part_versions_note(struct pipeline *pipeline);
