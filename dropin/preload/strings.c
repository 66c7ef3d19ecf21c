/* Functions of the stand-in library that need no device: texts of enumerations, and rates. Texts and values are those
 * of the manual pages ibv_event_type_str(3) and ibv_rate_to_mbps(3), as rdma-core prints them. The numbers are those of
 * <infiniband/verbs.h>, which this file does not include: it is built on machines without it. */
#include "preload.h"

#include <stddef.h>

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

/* find_text returns the text of a value, or unknown. */
static const char *find_text(const char *const *texts, int count, int value, const char *unknown)
{
	return value >= 0 && value < count && texts[value] ? texts[value] : unknown;
}

/* Without these prototypes the compiler warns of functions that no header declares. */
const char *ibv_wc_status_str(int value), *ibv_event_type_str(int value), *ibv_node_type_str(int value);
const char *ibv_port_state_str(int value), *ibv_get_sysfs_path(void);
int ibv_rate_to_mult(int rate), mult_to_ibv_rate(int multiple), ibv_rate_to_mbps(int rate), mbps_to_ibv_rate(int mbps);
void ibv_register_driver(const char *name, void *init);

PUBLIC const char *ibv_wc_status_str(int value)
{
	static const char *const texts[] = {
		[0] = "success",
		[1] = "local length error",
		[2] = "local QP operation error",
		[3] = "local EE context operation error",
		[4] = "local protection error",
		[5] = "Work Request Flushed Error",
		[6] = "memory management operation error",
		[7] = "bad response error",
		[8] = "local access error",
		[9] = "remote invalid request error",
		[10] = "remote access error",
		[11] = "remote operation error",
		[12] = "transport retry counter exceeded",
		[13] = "RNR retry counter exceeded",
		[14] = "local RDD violation error",
		[15] = "remote invalid RD request",
		[16] = "aborted error",
		[17] = "invalid EE context number",
		[18] = "invalid EE context state",
		[19] = "fatal error",
		[20] = "response timeout error",
		[21] = "general error",
		[22] = "TM error",
		[23] = "TM software rendezvous",
	};
	return find_text(texts, COUNT(texts), value, "unknown");
}

PUBLIC const char *ibv_event_type_str(int value)
{
	static const char *const texts[] = {
		[0] = "CQ error",
		[1] = "local work queue catastrophic error",
		[2] = "invalid request local work queue error",
		[3] = "local access violation work queue error",
		[4] = "communication established",
		[5] = "send queue drained",
		[6] = "path migrated",
		[7] = "path migration request error",
		[8] = "local catastrophic error",
		[9] = "port active",
		[10] = "port error",
		[11] = "LID change",
		[12] = "P_Key change",
		[13] = "SM change",
		[14] = "SRQ catastrophic error",
		[15] = "SRQ limit reached",
		[16] = "last WQE reached",
		[17] = "client reregistration",
		[18] = "GID table change",
		[19] = "WQ fatal",
	};
	return find_text(texts, COUNT(texts), value, "unknown");
}

PUBLIC const char *ibv_node_type_str(int value)
{
	static const char *const texts[] = {
		[1] = "InfiniBand channel adapter",
		[2] = "InfiniBand switch",
		[3] = "InfiniBand router",
		[4] = "iWARP NIC",
		[5] = "usNIC",
		[6] = "usNIC UDP",
		[7] = "unspecified",
	};
	return find_text(texts, COUNT(texts), value, "unknown");
}

PUBLIC const char *ibv_port_state_str(int value)
{
	static const char *const texts[] = {
		[0] = "no state change (NOP)",
		[1] = "down",
		[2] = "init",
		[3] = "armed",
		[4] = "active",
		[5] = "active defer",
	};
	return find_text(texts, COUNT(texts), value, "unknown");
}

/* The rates of enum ibv_rate: multiple of 2.5 Gbit/s, or -1 if there is none, and Mbit/s. */
static const struct { int multiple, mbps; } rates[] = {
	[0] = { -1, -1 },
	[1] = { -1, -1 },
	[2] = { 1, 2500 },
	[3] = { 4, 10000 },
	[4] = { 12, 30000 },
	[5] = { 2, 5000 },
	[6] = { 8, 20000 },
	[7] = { 16, 40000 },
	[8] = { 24, 60000 },
	[9] = { 32, 80000 },
	[10] = { 48, 120000 },
	[11] = { -1, 14062 },
	[12] = { -1, 56250 },
	[13] = { -1, 112500 },
	[14] = { -1, 168750 },
	[15] = { -1, 25781 },
	[16] = { -1, 103125 },
	[17] = { -1, 206250 },
	[18] = { -1, 309375 },
	[19] = { 11, 28125 },
	[20] = { 20, 53125 },
	[21] = { 160, 425000 },
	[22] = { 240, 637500 },
	[23] = { 320, 850000 },
	[24] = { 480, 1275000 },
};

PUBLIC int ibv_rate_to_mult(int rate)
{
	return rate >= 0 && rate < COUNT(rates) ? rates[rate].multiple : -1;
}

PUBLIC int mult_to_ibv_rate(int multiple)
{
	for (int i = 0; i < COUNT(rates); i++)
		if (multiple > 0 && rates[i].multiple == multiple)
			return i;
	return 0; /* IBV_RATE_MAX */
}

PUBLIC int ibv_rate_to_mbps(int rate)
{
	return rate >= 0 && rate < COUNT(rates) ? rates[rate].mbps : -1;
}

PUBLIC int mbps_to_ibv_rate(int mbps)
{
	for (int i = 0; i < COUNT(rates); i++)
		if (mbps > 0 && rates[i].mbps == mbps)
			return i;
	return 0; /* IBV_RATE_MAX */
}

PUBLIC const char *ibv_get_sysfs_path(void)
{
	return "/sys";
}

/* ibv_register_driver accepts the call of a provider, which has no devices here. */
PUBLIC void ibv_register_driver(const char *name, void *init)
{
	(void)name;
	(void)init;
}
