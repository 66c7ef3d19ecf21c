package cmtool

const MaxMemory = maxMemory

func (o *Options) Check() error { return o.check() }
