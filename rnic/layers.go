package rnic

import (
	"slices"
	"sync"
)

// LayerInfo is what something that runs on a device has counted, such as
// package cm.
type LayerInfo struct {
	Name     string         `json:"name"` // "cm"
	Counters []LayerCounter `json:"counters"`
}

// LayerCounter is a counter of a layer, or a level if it also falls.
type LayerCounter struct {
	Name  string `json:"name"`
	Value uint64 `json:"value"`
	Level bool   `json:"level,omitempty"`
}

// layers are those that show their counters. The zero value is ready for use.
type layers struct {
	mu   sync.Mutex
	list []*layer
}

type layer struct {
	name string
	each func(yield func(name string, value uint64, level bool))
}

// AddLayer makes the counters of something that runs on the device part of its
// snapshots, and so of `softrnic stat` and of Prometheus, until remove is
// called; twice is safe. Names are in snake case. each calls yield for every
// counter, always in the same order. It is called from any goroutine, with no
// lock of the device held. A nil function adds nothing.
func (d *Device) AddLayer(name string, each func(yield func(name string, value uint64, level bool))) (remove func()) {
	if each == nil {
		return func() {}
	}
	l := &layer{name, each}
	d.layers.mu.Lock()
	defer d.layers.mu.Unlock()
	d.layers.list = append(d.layers.list, l)
	return func() {
		d.layers.mu.Lock()
		defer d.layers.mu.Unlock()
		d.layers.list = slices.DeleteFunc(d.layers.list, func(other *layer) bool { return other == l })
	}
}

// inspect asks every layer, in the order in which they were added.
func (l *layers) inspect() (list []LayerInfo) {
	l.mu.Lock()
	all := slices.Clone(l.list)
	l.mu.Unlock()
	for _, one := range all {
		info := LayerInfo{Name: one.name}
		one.each(func(name string, value uint64, level bool) {
			info.Counters = append(info.Counters, LayerCounter{name, value, level})
		})
		list = append(list, info)
	}
	return list
}
