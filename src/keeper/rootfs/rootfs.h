/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox sees as "/": an overlay of its template and its own writable layer, with a private
 * /dev, a masked /proc, and the workspace. Its template is the host's, a small directory and the
 * host's /usr (under an overlay too), or the layers of an image (layer_store.h).
 * (virtual_sys.h makes /sys.)
 *
 * All of it is built from descriptors. The child clones its sources while it is still in the
 * keeper's mount namespace (the kernel clones only mounts of the caller's); then it enters a
 * namespace whose only mount is an empty read-only tmpfs, copies that, and attaches the new root
 * over it. So nothing of the host's mount table ever exists in a sandbox, not even for an instant,
 * and the copy costs the same on a host with two mounts or two thousand. There is no pivot_root:
 * the place below the new root is empty, and the unmount would wait for an RCU grace period.
 *
 * The keeper's mount namespace is a copy of the host's that follows it. Kernels before 6.15 neither
 * clone a detached mount nor take it as a layer of an overlay. So what the keeper makes for that,
 * /dev, and the template and /usr mapped to a range of uids, is mounted, on a mount area that the
 * host does not see.
 */
#pragma once

#include "base/err.h"
#include "keeper/disk/storage.h"
#include "keeper/rootfs/proc_mask.h"

/* Made once, when the keeper starts. */
struct rootfs_sources {
	bool is_host;	   /* the keeper is root of the host */
	int template_fd;   /* directory of the host's template */
	int layers_fd;	   /* directory of the layers of images */
	int mount_area_fd; /* has dev, and the files that virtual_sys.h clones */
	int lowers_fd; /* a section of it: template, /usr and layers as each uid range sees them, once used,
			  and until it is forgotten */
	int usr_fd;	 /* the host's /usr */
	int dev_fd;	 /* a tmpfs with the device nodes */
	int empty_ns_fd; /* mount namespace with one empty mount */
	struct proc_masks masks;
};

/* Leaves the host's mount namespace. To be called before any directory is opened. */
int rootfs_leave_host(struct err *err) must_check;

/*
 * For a keeper that is root of less than the host: mounts a tmpfs of its own over the templates,
 * because it cannot map the ids of a file system of the host.
 */
int rootfs_cover_templates(int *templates_fd, struct err *err) must_check;

int rootfs_open_sources(struct rootfs_sources *sources, int template_fd, int layers_fd,
	bool is_host, struct err *err) must_check;

/* Unmounts what is kept for the sandboxes of a uid range, none of which runs or is being built. */
void rootfs_forget_range(const struct rootfs_sources *sources, uint32_t base_uid);

/*
 * In the child, in a copy of a sandbox's mount namespace: makes it the view of an isolated command
 * (isolated_exec.h). It looks up places without following a link, since the sandbox may have
 * changed them.
 */
int rootfs_isolate(const struct rootfs_sources *sources, uint32_t base_uid, uint64_t memory_bytes,
	struct err *err) must_check;

/* In the child: builds the root of a stack of layers ("": of the host), and makes it the child's "/". */
int rootfs_enter(const struct rootfs_sources *sources, const struct storage_dirs *dirs,
	const char *stack, int userns_fd, uint32_t base_uid, uint64_t memory_bytes, struct err *err)
	must_check;

/*
 * In a child: shows what a layer of the store has at KEEPER_LAYER_PLACE, there and read-only, to
 * the running sandbox that pidfd names, in the place of what was shown before.
 */
int rootfs_show_layer(const struct rootfs_sources *sources, const char *layer, int userns_fd,
	uint32_t base_uid, int pidfd, struct err *err) must_check;

/* In a child: shows a directory of the host at a place, read-only, to the running sandbox that pidfd names. Nothing
 * happens if it is shown there already. */
int rootfs_show_dir(int dir_fd, const char *place, int pidfd, struct err *err) must_check;

/*
 * In a child: makes two read-only mounts, detached, of what lies below the upper layer of a sandbox
 * (its stack, "": the host's template), and of both together. userns_fd has the ids that the upper
 * layer is seen with.
 */
int rootfs_compare(const struct rootfs_sources *sources, int upper_fd, const char *stack,
	int userns_fd, int *ret_below_fd, int *ret_merged_fd, struct err *err) must_check;

/* In the child: makes a mount the whole of what the child sees. */
int rootfs_enter_alone(const struct rootfs_sources *sources, int mount_fd, struct err *err)
	must_check;

/*
 * In the child, in its root, if no request waits: looks at the files that nearly every command
 * needs, so that the first command finds them in the caches of the new overlay.
 */
void rootfs_warm(void);

/*
 * In the child, once the sysctls of its namespaces are set: makes them read-only, whatever their
 * modes.
 */
int rootfs_seal(struct err *err) must_check;
