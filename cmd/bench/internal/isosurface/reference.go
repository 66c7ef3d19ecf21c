package isosurface

import "image"

// Reference renders a volume for comparison: at once, without filters, streams and blocks.
func Reference(v *Volume, q Query) (*image.NRGBA, error) {
	if err := q.setDefaults(); err != nil {
		return nil, err
	}
	all := samples{cells: v.cellCounts()}
	plane := make([]byte, v.dims[0]*v.dims[1])
	for z := -1; z <= v.dims[2]; z++ {
		if err := v.readPlane(plane, z); err != nil {
			return nil, err
		}
		for y := -1; y <= v.dims[1]; y++ {
			for x := -1; x <= v.dims[0]; x++ {
				all.data = append(all.data, plane[min(max(y, 0), v.dims[1]-1)*v.dims[0]+min(max(x, 0), v.dims[0]-1)])
			}
		}
	}
	p := q.newProjection(v.dims)
	f := newFrame(q.Size)
	r := rasterizer{size: int64(q.Size)}
	var failed error
	all.extractSurface(q.Iso, func(t *triangle) {
		var points [3]point
		for i := range t {
			points[i] = p.projectVertex(t[i].at, t[i].normal)
		}
		failed = r.drawTriangle(&points, func(x, y int, run []pixel) error {
			f.mergeRun(x, y, run)
			return nil
		})
	})
	return f.toImage(), failed
}
