package mpi

import "slices"

// Attr is a key under which a library keeps a value of its own with each communicator
// that it is given (MPI_Comm_create_keyval), so that it finds it again, and is told when
// the communicator is freed.
type Attr[T any] struct {
	copy func(c *Comm, v T) (T, bool)
	free func(c *Comm, v T)
}

// NewAttr makes a key. When a communicator c is duplicated copy says which value the new
// one has, or false if none. When the value is deleted, or replaced, or c is freed, free is
// called. Both may be nil: nothing is copied (MPI_COMM_NULL_COPY_FN), or done.
func NewAttr[T any](copy func(c *Comm, v T) (T, bool), free func(c *Comm, v T)) *Attr[T] {
	return &Attr[T]{copy, free}
}

// attrValue is what a communicator has under a key.
type attrValue struct {
	key attrKey
	v   any
}

// attrKey is an Attr of any type.
type attrKey interface {
	copyValue(c *Comm, v any) (any, bool)
	freeValue(c *Comm, v any)
}

func (a *Attr[T]) copyValue(c *Comm, v any) (any, bool) {
	if a.copy == nil {
		return nil, false
	}
	return a.copy(c, v.(T))
}

func (a *Attr[T]) freeValue(c *Comm, v any) {
	if a.free != nil {
		a.free(c, v.(T))
	}
}

// Set keeps a value with a communicator (MPI_Comm_set_attr). With a null key, or the
// null communicator, nothing is kept.
func (a *Attr[T]) Set(c *Comm, v T) {
	if a == nil || c.isNull() {
		return
	}
	a.Delete(c)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attrs = append(c.attrs, attrValue{a, v})
}

// Get returns the value, and whether there is one (MPI_Comm_get_attr).
func (a *Attr[T]) Get(c *Comm) (v T, ok bool) {
	if a == nil || c.isNull() {
		return v, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.attrs {
		if x.key == attrKey(a) {
			return x.v.(T), true
		}
	}
	return v, false
}

// Delete forgets the value, if there is one (MPI_Comm_delete_attr).
func (a *Attr[T]) Delete(c *Comm) {
	if a == nil || c.isNull() {
		return
	}
	c.mu.Lock()
	i := slices.IndexFunc(c.attrs, func(x attrValue) bool { return x.key == attrKey(a) })
	var v any
	if i >= 0 {
		v = c.attrs[i].v
		c.attrs = slices.Delete(c.attrs, i, i+1)
	}
	c.mu.Unlock()
	if i >= 0 {
		a.freeValue(c, v)
	}
}

// copyAttrs gives a duplicate the values that it shall have.
func (c *Comm) copyAttrs(d *Comm) {
	c.mu.Lock()
	list := slices.Clone(c.attrs)
	c.mu.Unlock()
	for _, x := range list {
		if v, ok := x.key.copyValue(c, x.v); ok {
			d.attrs = append(d.attrs, attrValue{x.key, v})
		}
	}
}

// freeAttrs frees all values, the last one first.
func (c *Comm) freeAttrs() {
	c.mu.Lock()
	list := c.attrs
	c.attrs = nil
	c.mu.Unlock()
	for _, x := range slices.Backward(list) {
		x.key.freeValue(c, x.v)
	}
}
