/* notify - tells a service manager such as systemd how far a service is.
 *
 * The protocol is that of sd_notify(3): a datagram of NAME=VALUE lines to the Unix socket that
 * $NOTIFY_SOCKET names, by a path, or with '@' for the NUL of an abstract one. It is written here
 * anew after the page's section NOTES, so that no program needs libsystemd.
 *
 * Contract: without the variable nothing is sent. What cannot be sent is left out: the service does
 * not depend on it.
 */
#ifndef TOOLS_XSEG_NOTIFY_H
#define TOOLS_XSEG_NOTIFY_H

void notify_send(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
