/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The documents of an image: an index lists manifests by platform, a manifest lists the config and
 * the layers, the config says how layers unpack and how its programs are meant to be run. Both
 * families of media types are understood, those of OCI and those of Docker (v2, schema 2).
 *
 * All of it is foreign: sizes, counts and texts are bounded, digests are checked before they are
 * used as names, and what the config says about users, directories and variables is only text that
 * the caller judges again when a sandbox is made of it.
 */
#pragma once

#include "blob/digest.h"

#define IMAGE_DOCUMENT_MAX  (4u << 20) /* bytes of an index, a manifest or a config */
#define IMAGE_LAYERS_MAX    127	       /* as many as Docker makes */
#define IMAGE_PLATFORMS_MAX 256
#define IMAGE_TEXTS_MAX	    512	  /* variables, arguments, ports, volumes: of each */
#define IMAGE_TEXT_MAX	    32768 /* bytes of one of them */

/* A blob that a document names. */
struct image_blob {
	struct digest digest;
	uint64_t size;
};

struct image_manifest {
	struct image_blob config;
	struct image_blob layers[IMAGE_LAYERS_MAX]; /* the lowest first */
	size_t layer_count;
};

/* A list of texts of one allocation each; ends with NULL. */
struct image_texts {
	char **list;
	size_t count;
};

struct image_config {
	struct digest diff_ids[IMAGE_LAYERS_MAX]; /* of the unpacked layers, the lowest first */
	size_t layer_count;
	char *user; /* "", "name", "1000", "1000:1000", "name:group" */
	char *workdir;
	struct image_texts env; /* "NAME=value" */
	struct image_texts entrypoint;
	struct image_texts command;
	struct image_texts ports; /* "8080/tcp" */
	struct image_texts volumes;
	char *health; /* a line for /bin/sh: whether it can be used; NULL: not known. No image has it */
};

/* What a document is. */
enum image_document { IMAGE_INDEX, IMAGE_MANIFEST };

/*
 * Reads an index or a manifest; its own mediaType decides, else its fields. Of an index it returns
 * the manifest for this machine's processor and linux; ERR_NOT_FOUND (image_platform) names those
 * that there are.
 */
int image_manifest_read(const void *text, size_t len, enum image_document *ret_kind,
	struct image_blob *ret_chosen, struct image_manifest *ret_manifest, struct err *err)
	must_check;

/* Reads a config; it must name as many layers as the manifest. */
int image_config_read(const void *text, size_t len, size_t layer_count,
	struct image_config *ret_config, struct err *err) must_check;
void image_config_fini(struct image_config *config);

/* This machine's processor as images name it: "amd64", "arm64". */
const char *image_architecture(void);
