/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests about files at rest: disks, layers, projects and snapshots. requests.c checks a
 * request before one of these sees it. What may take long is done by a child of the keeper.
 */
#pragma once

#include "keeper/keeper.h"
#include "wire/keeper.h"

void file_requests_usage(struct keeper *keeper, const struct keeper_request *request, int conn);
void file_requests_owner(struct keeper *keeper, const struct keeper_request *request, int conn);
void file_requests_failed(struct keeper *keeper, const struct keeper_request *request, int conn);
void file_requests_stored(struct keeper *keeper, const struct keeper_request *request, int conn);
void file_requests_clean(struct keeper *keeper, const struct keeper_request *request, int conn);
void file_requests_check(struct keeper *keeper, const struct keeper_request *request, int conn);
void file_requests_layer_write(
	struct keeper *keeper, const struct keeper_request *request, int conn);
void file_requests_tree_read(struct keeper *keeper, const struct keeper_request *request, int conn);
void file_requests_layer_show(
	struct keeper *keeper, const struct keeper_request *request, int conn);
void file_requests_project_show(
	struct keeper *keeper, const struct keeper_request *request, int conn);
void file_requests_layers(struct keeper *keeper, const struct keeper_request *request, int conn);
void file_requests_layer_list(
	struct keeper *keeper, const struct keeper_request *request, int conn);
void file_requests_snapshot_take(
	struct keeper *keeper, const struct keeper_request *request, int conn);
void file_requests_snapshot_drop(
	struct keeper *keeper, const struct keeper_request *request, int conn);
void file_requests_snapshot_list(
	struct keeper *keeper, const struct keeper_request *request, int conn);
void file_requests_snapshot_copy(
	struct keeper *keeper, const struct keeper_request *request, int conn);
void file_requests_snapshot_place(
	struct keeper *keeper, const struct keeper_request *request, int conn);
