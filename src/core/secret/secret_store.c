/* SPDX-License-Identifier: Apache-2.0 */
#include "core/secret/secret_store.h"

#include "base/fd.h"
#include "base/log.h"
#include "core/secret/seal.h"
#include "store/access/store_secret.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define LABEL_MAX 2048
#define LABEL	  "sandlot secret 1"

struct secret_store {
	struct store *store;
	struct secret_cache *cache;
	pthread_mutex_t order; /* so that row and secret cache tell of the same change last */
	uint8_t key[SEAL_KEY_LEN];
};

/* --- the key --- */

/* The name of a file lasts when its directory does. */
static int sync_directory(const char *path)
{
	auto_free char *copy = mem_strdup(path);
	auto_fd int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

/* Under another name first: half a key, left by a crash or a full disk, would be in the way for ever. */
static int make_key(const char *path, uint8_t key[SEAL_KEY_LEN], struct err *err)
{
	auto_free char *draft = mem_printf("%s.new", path);
	auto_fd int fd = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return err_sys(err, "make the key of secrets, %s", draft);
	if (getrandom(key, SEAL_KEY_LEN, 0) != SEAL_KEY_LEN)
		return err_sys(err, "make the key of secrets");
	r = fd_write_full(fd, key, SEAL_KEY_LEN);
	if (r == 0 && (fsync(fd) < 0 || rename(draft, path) < 0))
		r = -errno;
	if (r == 0)
		r = sync_directory(path);
	return r < 0 ? err_from(err, r, "write the key of secrets, %s", path) : 0;
}

static int read_key(const char *path, uint8_t key[SEAL_KEY_LEN], struct err *err)
{
	auto_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;

	if (fd < 0 && errno == ENOENT)
		return make_key(path, key, err);
	if (fd < 0 || fstat(fd, &status) < 0)
		return err_sys(err, "open the key of secrets, %s", path);
	if (status.st_mode & 077)
		return err_explain(err, ERR_INVALID, "key_not_private", "chmod 600 it",
			"others may read the key of secrets, %s", path);
	if (status.st_size != SEAL_KEY_LEN || fd_read_full(fd, key, SEAL_KEY_LEN) < 0)
		return err_explain(err, ERR_INVALID, "key_damaged",
			"restore it; or remove it and set all secrets again",
			"%s is no key of secrets", path);
	return 0;
}

/* --- rows --- */

static void put_text(struct buf *label, const char *text)
{
	buf_append(label, text, strlen(text) + 1);
}

/* All that says whose it is and where it goes. */
static void make_label(const struct secret_record *record, struct buf *label)
{
	put_text(label, LABEL);
	put_text(label, record->owner.organization);
	put_text(label, record->owner.user);
	put_text(label, record->name);
	put_text(label, record->url);
	put_text(label, record->header);
	put_text(label, record->prefix);
	put_text(label, record->is_trusted ? "trusted" : "");
}

static void load(const struct secret_record *record, const void *sealed, size_t len, void *arg)
{
	auto_(buf_fini) struct buf label = BUF_INIT(LABEL_MAX);
	struct secret_server server;
	struct secret_store *secrets = arg;
	char *value;

	if (secret_server_read(record->url, &server) < 0) {
		log_error("the secret %s of %s/%s leads to no server, but to %s; set it again",
			record->name, record->owner.organization, record->owner.user, record->url);
		return;
	}
	make_label(record, &label);
	if (seal_open(secrets->key, &label, sealed, len, &value) < 0) {
		log_error(
			"the secret %s of %s/%s does not open: the key is another one, or the row "
			"was changed; set it again",
			record->name, record->owner.organization, record->owner.user);
		return;
	}
	secret_cache_put(secrets->cache, record, &server, value);
	explicit_bzero(value, strlen(value));
	free(value);
}

int secret_store_open(struct store *store, const char *key_path, struct secret_store **ret_secrets,
	struct err *err)
{
	struct secret_store *secrets = mem_new(sizeof(*secrets));
	int r;

	secrets->store = store;
	secrets->cache = secret_cache_new();
	pthread_mutex_init(&secrets->order, NULL);
	r = read_key(key_path, secrets->key, err);
	if (r == 0)
		r = store_secret_list(store, NULL, load, secrets, err);
	if (r < 0) {
		secret_store_close(secrets);
		return r;
	}
	*ret_secrets = secrets;
	return 0;
}

void secret_store_close(struct secret_store *secrets)
{
	if (!secrets)
		return;
	secret_cache_free(secrets->cache);
	pthread_mutex_destroy(&secrets->order);
	explicit_bzero(secrets->key, sizeof(secrets->key));
	free(secrets);
}

void secret_store_derive_key(
	const struct secret_store *secrets, const char *use, unsigned char ret_key[32])
{
	if (!HMAC(EVP_sha256(), secrets->key, sizeof(secrets->key), (const unsigned char *)use,
		    strlen(use), ret_key, NULL))
		abort();
}

struct secret_cache *secret_store_cache(struct secret_store *secrets)
{
	return secrets->cache;
}

int secret_store_put(struct secret_store *secrets, const struct secret_record *record,
	const char *value, struct err *err)
{
	auto_(buf_fini) struct buf label = BUF_INIT(LABEL_MAX);
	auto_(buf_fini) struct buf sealed = BUF_INIT(SECRET_VALUE_MAX + SEAL_OVERHEAD);
	struct secret_server server;
	int r;

	if (secret_server_read(record->url, &server) < 0)
		return err_set(
			err, ERR_INVALID, "%s is no server to send a secret to", record->url);
	make_label(record, &label);
	r = seal_close(secrets->key, &label, value, strlen(value), &sealed);
	if (r < 0)
		return err_from(err, r, "seal the secret %s", record->name);
	pthread_mutex_lock(&secrets->order);
	r = store_secret_put(secrets->store, record, sealed.data, sealed.len, err);
	if (r == 0)
		secret_cache_put(secrets->cache, record, &server, value);
	pthread_mutex_unlock(&secrets->order);
	return r;
}

int secret_store_remove(
	struct secret_store *secrets, const struct owner *owner, const char *name, struct err *err)
{
	int r;

	pthread_mutex_lock(&secrets->order);
	r = store_secret_delete(secrets->store, owner, name, err);
	if (r == 0)
		secret_cache_remove(secrets->cache, owner, name);
	pthread_mutex_unlock(&secrets->order);
	return r;
}
