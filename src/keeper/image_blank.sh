#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints, as C, the blocks of an empty ext4 file system that are not zero (image.h).
# Usage: image_blank.sh MKE2FS IMAGE_GEN
#
# Every feature is named, so that no configuration of the machine that builds gets in. No copies of the
# superblock, no room for growing, 262144 inodes. A journal, because a workspace is to survive a crash of
# the host; a small one, because each sandbox that works hard fills it on the host's disk.
set -eu
dir=$(mktemp -d "${TMPDIR:-/tmp}/sandlot-blank.XXXXXX")
trap 'rm -rf "$dir"' EXIT
image=$dir/image
uuid=73616e64-6c6f-4000-8000-000000000000
printf '[fs_types]\n\text4 = {\n\t\tinode_ratio = 262144\n\t}\n' >"$dir/conf"
truncate -s 64G "$image"
MKE2FS_CONFIG=$dir/conf E2FSPROGS_FAKE_TIME=1 "$1" -q -F -t ext4 -b 4096 -I 256 -g 32768 -G 32 -N 262144 -m 0 \
  -O none,has_journal,ext_attr,dir_index,filetype,extent,flex_bg,sparse_super2,large_file,huge_file,dir_nlink,extra_isize,metadata_csum \
  -J size=16 -U "$uuid" \
  -E "nodiscard,lazy_itable_init=1,lazy_journal_init=1,num_backup_sb=0,root_owner=0:0,hash_seed=$uuid" "$image" >&2
"$2" "$image"
