/* A plugin that needs libibverbs, which its program does not. */
int ibv_is_fork_initialized(void);
int plugin_call(void);

int plugin_call(void)
{
	return ibv_is_fork_initialized();
}
