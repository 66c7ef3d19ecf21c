package mpi

import "slices"

// Attr is a key for values that a library attaches to communicators (MPI_Comm_create_keyval).
type Attr[T any] struct {
	copy func(c *Comm, v T) (T, bool)
	free func(c *Comm, v T)
}

// NewAttr makes a key. copy returns the value for a duplicate of c, or false if the duplicate
// has none. free is called when the value is deleted or replaced, or c is freed. A nil copy
// copies nothing (MPI_COMM_NULL_COPY_FN); a nil free does nothing.
func NewAttr[T any](copy func(c *Comm, v T) (T, bool), free func(c *Comm, v T)) *Attr[T] {
	return &Attr[T]{copy, free}
}

// attrValue is the value of a communicator under a key.
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

// Set attaches a value to a communicator and frees the old one (MPI_Comm_set_attr). It has no
// effect if the key or the communicator is null.
func (a *Attr[T]) Set(c *Comm, v T) {
	if a == nil || c.isNull() {
		return
	}
	a.Delete(c)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attrs = append(c.attrs, attrValue{a, v})
}

// Get returns the value and reports whether there is one (MPI_Comm_get_attr).
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

// Delete removes and frees the value (MPI_Comm_delete_attr).
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

// copyAttrs copies the values of c to its duplicate d.
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

// freeAttrs frees all values in reverse order.
func (c *Comm) freeAttrs() {
	c.mu.Lock()
	list := c.attrs
	c.attrs = nil
	c.mu.Unlock()
	for _, x := range slices.Backward(list) {
		x.key.freeValue(c, x.v)
	}
}
