/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A socket of a proxy, with or without TLS: bytes received and not parsed, and bytes to send. A proxy has
 * two of them and reads one only while the other has room, so a slow reader slows the writer.
 *
 * It is watched edge by edge: what may be read or written is remembered until the kernel says otherwise.
 */
#pragma once

#include "event/event_loop.h"
#include "http/message.h"

struct buffered_socket_limits {
	size_t read_bytes;  /* at a time */
	size_t waiting_max; /* to be sent; then the other socket is not read */
	size_t out_max;	    /* of that, with what one read of the other may become */
};

/* As recv and send, with -errno. */
struct buffered_socket_io {
	ssize_t (*read)(void *arg, void *data, size_t len);
	ssize_t (*write)(void *arg, const void *data, size_t len);
};

struct buffered_socket {
	void *owner;
	const struct buffered_socket_limits *limits;
	const struct buffered_socket_io *io; /* of TLS; NULL: plain */
	void *io_arg;
	int fd;		     /* -1: not connected */
	struct watch *watch; /* the owner's, closed with it */
	bool is_readable, is_writable;
	bool hangs_up;		   /* its end is on the way: to be read */
	bool has_ended, is_broken; /* it ended, without having said so */
	bool has_write_failed;	   /* what is to be sent is dropped; it may still be read */
	struct buf in, out;
};

/* Takes fd over; -1: not connected yet. */
void buffered_socket_init(struct buffered_socket *sock, void *owner, int fd,
	const struct buffered_socket_limits *limits);

/* Closes it; it may be connected again. */
void buffered_socket_close(struct buffered_socket *sock);

/* Drops memory that holds nothing. */
void buffered_socket_release(struct buffered_socket *sock);

/* Notes what epoll reported. */
void buffered_socket_note(struct buffered_socket *sock, uint32_t events);

/* Whether more may be put into `out`. */
bool buffered_socket_has_room(const struct buffered_socket *sock);

/* Reads once into `in`; whether something came, be it the end. */
bool buffered_socket_receive(struct buffered_socket *sock);

/*
 * Sends what waits; whether bytes went out. Bytes that the peer sent before it stopped reading are
 * still read, and its end.
 */
bool buffered_socket_flush(struct buffered_socket *sock);
