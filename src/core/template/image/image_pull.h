/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings an image into the store of layers: from a registry, or from an archive. What is there
 * already is not brought again, with one exception: a layer that another owner brought is fetched
 * anew and compared before it is shared. Without that an owner could name the digest of a layer that
 * only somebody else has, and get its content.
 *
 * A pull takes as long as it takes; it makes progress or ends. It can be repeated after any failure
 * and after a crash, and goes on where it was.
 */
#pragma once

#include "blob/blob_store.h"
#include "core/template/image/layer_install.h"
#include "driver/driver.h"
#include "image/image_archive.h"
#include "image/image_manifest.h"
#include "image/image_reference.h"
#include "image/registry.h"

#define IMAGE_PULL_PARALLEL 3
#define IMAGE_ARCHIVE_MAX   (64ull << 30)

struct image_pull {
	const struct owner *owner; /* who brings it */
	struct driver *driver;
	struct blob_store *blobs;
	struct layer_installs *installs;
	/* Whether the owner has proved to have a layer, which then counts as used; and a note that it has one, and how
	 * that was installed. */
	bool (*has_layer)(void *arg, const struct digest *diff_id);
	void (*note_layer)(
		void *arg, const struct digest *diff_id, const struct layer_installed *installed);
	/* Notes that a layer or stack is about to be made or used (layer_install.h). */
	int (*begin)(void *arg, const char *name, bool is_stack, struct err *err);
	/* Whether layers that are so large as they are sent may come: 0, or ERR_RATE. */
	int (*may_bring)(void *arg, uint64_t bytes, struct err *err);
	/* 0, or ERR_NO_SPACE, or ERR_RATE. */
	int (*may_grow)(void *arg, int64_t bytes, struct err *err);
	/* How far it is; from several threads. */
	void (*progress)(void *arg, size_t layer, size_t layers, uint64_t bytes, uint64_t of);
	void *arg;
};

/* What came of it. */
struct image_pulled {
	struct digest digest; /* of the manifest, empty for an archive */
	struct digest stack;  /* of what sandboxes start from: driver_spec.stack */
	struct image_config config;
	uint64_t bytes; /* of its layers as they were sent */
	uint64_t stripped, devices;
};

void image_pulled_fini(struct image_pulled *pulled);

/* Stacks the layers of a config, which are all there; sandboxes can start from the stack then. */
int image_pull_stack(const struct image_pull *pull, const struct image_config *config,
	struct digest *ret_stack, struct err *err) must_check;

int image_pull_registry(const struct image_pull *pull, struct registry *registry,
	const struct image_reference *reference, struct image_pulled *ret_pulled, struct err *err)
	must_check;

int image_pull_archive(const struct image_pull *pull, const struct image_source *source,
	const char *tag, struct image_pulled *ret_pulled, struct err *err) must_check;
