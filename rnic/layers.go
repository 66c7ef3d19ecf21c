package rnic

import (
	"slices"
	"sync"
)

// LayerInfo are the counters of a layer that runs on a device, such as package
// cm.
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

// layers are the layers that publish counters. The zero value is ready for use.
type layers struct {
	mu   sync.Mutex
	list []*layer
}

type layer struct {
	name string
	each func(yield func(name string, value uint64, level bool))
}

// AddLayer adds the counters of a layer above the device to its snapshots, and
// thereby to `softrnic stat` and Prometheus, until remove is called, which is
// idempotent. Names are in snake case. each calls yield for every counter,
// always in the same order; it may be called from any goroutine, with no lock
// of the device held. A nil function adds nothing.
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

// inspect returns the counters of every layer, in the order in which they were
// added.
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
