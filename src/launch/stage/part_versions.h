/* SPDX-License-Identifier: Apache-2.0 */
/* With what an app was launched: kept with the launch, so that runs can be compared. */
#pragma once

struct pipeline;

/* Puts "versions" into the record of a launch that begins: of Sandlot and the template. */
void part_versions_begin(struct pipeline *pipeline);

/*
 * Adds what the sandbox says of itself once packages are installed: node, python and the frameworks. What it does not say
 * is left out; a launch does not fail by it. Asks once in a launch.
 */
void part_versions_note(struct pipeline *pipeline);
