/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox sees as "/": an overlay of its template and its own writable layer, with the host's
 * /usr (under an overlay too), a private /dev, /proc with its telling files masked, and the workspace. (/sys is view.h's.)
 *
 * All of it is built from descriptors. Sources are cloned while the child still stands in the keeper's
 * mount namespace (the kernel clones only what belongs to the caller's); then it steps into a
 * namespace whose only mount is an empty read-only tmpfs, copies that, and attaches the new root over
 * it. So nothing of the host's mount table ever exists in a sandbox, not even for an instant, and the
 * copy costs the same on a host with two mounts or two thousand. There is no pivot_root: the place
 * below the new root is empty, and the unmount would wait for an RCU grace period.
 *
 * The keeper's mount namespace is a copy of the host's that follows it. Kernels before 6.15 neither
 * clone a detached mount nor take it as a layer of an overlay. So what the keeper makes for that, /dev,
 * and the template and /usr mapped to a range of uids, is mounted, on a shelf that the host does not see.
 */
#pragma once

#include "base/err.h"
#include "keeper/proc_mask.h"
#include "keeper/storage.h"

/* Made once, when the keeper starts. */
struct rootfs_sources {
	bool is_host;	 /* the keeper is root of the host */
	int template_fd; /* directory of the template */
	int shelf_fd;	 /* dev, and what views are made of (view.h) */
	int lowers_fd; /* a section of it: template and /usr as each uid range sees them, once it was used */
	int usr_fd;	/* the host's /usr */
	int dev_fd;	/* a tmpfs with the device nodes */
	int void_ns_fd; /* mount namespace with one empty mount */
	struct proc_masks masks;
};

/* Leaves the host's mount namespace. To be called before any directory is opened. */
int rootfs_leave_host(struct err *err) must_check;

/*
 * For a keeper that is root of less than the host: what it makes as a template lies on a tmpfs of its own
 * then, because it cannot map the ids of a file system that is the host's.
 */
int rootfs_cover_templates(int *templates_fd, struct err *err) must_check;

int rootfs_open_sources(
	struct rootfs_sources *sources, int template_fd, bool is_host, struct err *err) must_check;

/*
 * In the child, in a copy of a sandbox's mount namespace: makes it the view of a cell (cell.h). The places
 * are looked for without following a link, since what is there is the sandbox's.
 */
int rootfs_divide(const struct rootfs_sources *sources, uint32_t base_uid, uint64_t memory_bytes,
	struct err *err) must_check;

/* In the child: builds the root and makes it the child's "/". */
int rootfs_enter(const struct rootfs_sources *sources, const struct storage_dirs *dirs,
	int userns_fd, uint32_t base_uid, uint64_t memory_bytes, struct err *err) must_check;

/*
 * In the child, in its root, if there is time: looks at what nearly every command needs, so that the first
 * one finds it in the caches of an overlay that is new.
 */
void rootfs_warm(void);

/* In the child, when the knobs of its namespaces are set: makes them read-only, whatever their modes. */
int rootfs_seal(struct err *err) must_check;
