/* Event channels of librdmacm. */
#ifndef SOFTRNIC_CHANNEL_H
#define SOFTRNIC_CHANNEL_H

enum { NO_CHANNEL = -2 };

/* softrnic_open_channel opens an event channel if path is that of the device, with the result of open(2), and returns
 * NO_CHANNEL otherwise, or if there is no engine. */
int softrnic_open_channel(const char *path, int flags);

#endif
