package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend"
)

// A site has a stage for each of its resources.
type site struct {
	open     opener
	cpu      *stage.Pool
	cache    *stage.Stage[lookup, *page]
	disk     *stage.Stage[string, *page]
	compress *stage.Stage[*page, *page]
}

const (
	largest  = 1 << 20 // bytes of a file that is read at once; a larger file is sent as it is read
	block    = 4096
	inFlight = 256             // reads in parallel, which is the limit of a ring
	patience = 2 * time.Second // limits the wait for the disk and for the compression
)

// newSite returns a site whose stages are on a scheduler; nil is goroutines. Its cache has room for a number of bytes.
func newSite(on suspend.Spawner, cache int, open opener) *site {
	s := &site{open: open, cpu: stage.NewPool("cpu", runtime.GOMAXPROCS(0), on)}
	s.cache = stage.New("cache", newCache(cache), stage.Options{Pool: s.cpu, Width: 1, Queue: 10_000, Full: stage.FullReject})
	s.disk = stage.New("disk", s.read, stage.Options{On: on, Width: inFlight, Queue: 5000, Full: stage.FullReject, Delay: patience / 4})
	s.compress = stage.New("compress", compress, stage.Options{Pool: s.cpu, Queue: 1000, Full: stage.FullReject})
	return s
}

func (s *site) close() error {
	return stage.Close(context.Background(), s.cache, s.disk, s.compress)
}

// answer is the handler of fasthttp. It runs in the task of the connection.
func (s *site) answer(ctx context.Context, c *fasthttp.RequestCtx) {
	if !c.IsGet() && !c.IsHead() {
		c.Error("method not allowed\n", http.StatusMethodNotAllowed)
		c.Response.Header.Set("Allow", "GET, HEAD")
		return
	}
	name := string(c.Path()[1:]) // fasthttp has cleaned the path
	if name == "" || strings.HasSuffix(name, "/") {
		name += "index.html"
	}
	p, err := s.page(ctx, name, takesGzip(c.Request.Header.PeekAll("Accept-Encoding")))
	switch {
	case err == nil:
		s.send(ctx, c, name, p)
	case errors.Is(err, errDirectory):
		to := url.URL{Path: "/" + name + "/", RawQuery: string(c.URI().QueryString())}
		c.Response.Header.Set("Location", to.String())
		c.SetStatusCode(http.StatusMovedPermanently)
	case errors.Is(err, stage.ErrOverload):
		c.Error("overloaded\n", http.StatusServiceUnavailable)
		c.Response.Header.Set("Retry-After", "1")
	case slices.ContainsFunc(noFile, func(e error) bool { return errors.Is(err, e) }):
		c.Error("not found\n", http.StatusNotFound)
	case errors.Is(err, context.DeadlineExceeded):
		c.Error("too slow\n", http.StatusGatewayTimeout)
	default:
		c.Error("error\n", http.StatusInternalServerError)
	}
}

// noFile has the errors of a name that is not in the site.
var noFile = []error{fs.ErrNotExist, fs.ErrInvalid, fs.ErrPermission, syscall.EINVAL, syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.ELOOP}

// page returns a file, compressed if it is text and the client takes that. This is the way of a request through the stages.
func (s *site) page(ctx context.Context, name string, compressed bool) (*page, error) {
	compressed = compressed && isText(name)
	p, err := s.cache.Do(ctx, lookup{name: name, compressed: compressed})
	if err != nil || p != nil {
		return p, err
	}
	ctx, end := cancel.WithTimeout(ctx, patience)
	defer end(nil)
	if p, err = s.disk.Do(ctx, name); err != nil || p.data == nil {
		return p, err
	}
	if compressed {
		if p, err = s.compress.Do(ctx, p); err != nil {
			return nil, err
		}
	}
	_ = s.cache.TrySubmit(ctx, lookup{name, compressed, p}) // a cache that has no time drops p, and the file is read again
	return p, nil
}

// A page is a file as it is sent. Its data must not be changed. It is nil if the file is too large: then the file is sent as it is read.
type page struct {
	data     []byte
	size     int64
	modified time.Time
	gzipped  bool
}

// read is the handler of the disk. A file system may allow direct reads, but refuse this read.
func (s *site) read(ctx context.Context, name string) (*page, error) {
	p, err := s.readOnce(ctx, name, true)
	if errors.Is(err, syscall.EINVAL) {
		p, err = s.readOnce(ctx, name, false)
	}
	return p, err
}

func (s *site) readOnce(ctx context.Context, name string, whole bool) (*page, error) {
	f, err := s.open(ctx, name, whole)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errDirectory
	case !info.Mode().IsRegular():
		return nil, fs.ErrNotExist
	case int64(int(info.Size())) != info.Size():
		return nil, errors.ErrUnsupported // 32 bits, and two gigabytes
	}
	p := &page{size: info.Size(), modified: info.ModTime()}
	if p.size > largest {
		return p, nil
	}
	p.data = make([]byte, p.size, roomFor(p.size))
	n, err := f.ReadAt(p.data[:cap(p.data)], 0)
	if err == io.EOF { // the file may have shrunk since the Stat
		p.data, p.size, err = p.data[:min(n, len(p.data))], min(int64(n), p.size), nil
	}
	return p, err
}

// roomFor rounds up the size of a buffer, so that it begins at a multiple of a block, as a direct read demands: Go allocates buffers of
// these sizes so.
func roomFor(size int64) int64 {
	for room := int64(block); room <= 32<<10; room *= 2 {
		if size <= room {
			return room
		}
	}
	return (size + 2*block - 1) / (2 * block) * (2 * block)
}

// An opener opens a file of the site. Operations on the file end with ctx. A file that is opened whole must be read at once, from its
// beginning.
type opener func(ctx context.Context, name string, whole bool) (file, error)

type file interface {
	io.ReaderAt
	Stat() (fs.FileInfo, error)
	Close() error
}

// onDisk opens the files of a directory on a loop. Direct reads go past the cache of the system, if its file system has them.
func onDisk(loop *eventloop.Loop, dir string, direct bool) opener {
	return func(ctx context.Context, name string, whole bool) (file, error) {
		if !fs.ValidPath(name) {
			return nil, fs.ErrInvalid
		}
		flag := os.O_RDONLY
		if direct && whole {
			flag |= openDirect
		}
		name = filepath.Join(dir, filepath.FromSlash(name))
		f, err := loop.OpenFile(name, flag, 0)
		if flag != os.O_RDONLY && errors.Is(err, syscall.EINVAL) {
			f, err = loop.Open(name)
		}
		if err != nil {
			return nil, err
		}
		return f.WithContext(ctx), nil
	}
}

var errDirectory = errors.New("is a directory")

// send answers with a page, or a part of it.
func (s *site) send(ctx context.Context, c *fasthttp.RequestCtx, name string, p *page) {
	h := &c.Response.Header
	if changed(c, p) {
		c.Error("changed\n", http.StatusPreconditionFailed)
		return
	}
	if len(c.Request.Header.Peek("If-None-Match")) == 0 && !c.IfModifiedSince(p.modified) {
		c.NotModified()
	} else {
		first, length, ok := span(c, p)
		switch {
		case !ok:
			h.Set("Content-Range", fmt.Sprintf("bytes */%d", p.size))
			c.SetStatusCode(http.StatusRequestedRangeNotSatisfiable)
			return
		case p.data != nil:
			c.Response.SetBodyRaw(p.data[first : first+length])
		case c.IsHead():
			c.Response.SkipBody = true
			h.SetContentLength(int(length))
		default:
			f, err := s.open(ctx, name, false)
			if err != nil {
				c.Error("error\n", http.StatusInternalServerError)
				return
			}
			c.Response.SetBodyStream(&stream{io.NewSectionReader(f, first, length), f}, int(length))
		}
		h.SetContentType(contentType(name))
		h.Set("Accept-Ranges", "bytes")
	}
	h.SetLastModified(p.modified)
	if isText(name) {
		h.Set("Vary", "Accept-Encoding") // a cache must not give it to others
	}
	if p.gzipped {
		h.SetContentEncoding("gzip")
	}
}

// changed reports whether a client requires an older version of the page. Pages have no ETag, so If-Match holds for any page
// or for none.
func changed(c *fasthttp.RequestCtx, p *page) bool {
	if match := c.Request.Header.Peek("If-Match"); len(match) > 0 {
		return string(match) != "*"
	}
	since, err := http.ParseTime(string(c.Request.Header.Peek("If-Unmodified-Since")))
	return err == nil && p.modified.Truncate(time.Second).After(since)
}

// span returns the part that a client requests; ok is false if there is none. A request for several parts gets the whole page instead.
func span(c *fasthttp.RequestCtx, p *page) (first, length int64, ok bool) {
	r := bytes.ToLower(c.Request.Header.Peek("Range"))
	if !c.IsGet() || !bytes.HasPrefix(r, []byte("bytes=")) || p.gzipped || bytes.IndexByte(r, ',') >= 0 || len(c.Request.Header.Peek("If-Range")) > 0 {
		return 0, p.size, true
	}
	from, to, err := fasthttp.ParseByteRange(r, int(p.size))
	if err != nil {
		return 0, 0, false
	}
	c.SetStatusCode(http.StatusPartialContent)
	c.Response.Header.SetContentRange(from, to, int(p.size))
	return int64(from), int64(to - from + 1), true
}

// A stream is a file that is sent as it is read, in parts that suit a disk.
type stream struct {
	*io.SectionReader
	file
}

func (s *stream) ReadAt(p []byte, off int64) (int, error) { return s.SectionReader.ReadAt(p, off) }

func (s *stream) WriteTo(w io.Writer) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{w}, s.SectionReader, make([]byte, 128<<10))
}

func contentType(name string) string {
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return "text/plain; charset=utf-8"
}

func isText(name string) bool {
	t := contentType(name)
	return strings.HasPrefix(t, "text/") || strings.Contains(t, "javascript") || strings.Contains(t, "json") || strings.Contains(t, "xml")
}

// A lookup gets a file from the cache. If page is not nil, it puts the page there instead.
type lookup struct {
	name       string
	compressed bool
	page       *page
}

// newCache returns the handler of a cache with room for size bytes. Its stage has a width of 1, so its state needs no lock. A page that was read
// since it was last looked at for eviction has a second chance.
func newCache(size int) func(context.Context, lookup) (*page, error) {
	type entry struct {
		*page
		used bool
	}
	kept, order, bytes := map[lookup]*entry{}, []lookup(nil), 0
	return func(_ context.Context, l lookup) (*page, error) {
		p := l.page
		l.page = nil
		e := kept[l]
		switch {
		case e != nil && p == nil:
			e.used = true
			return e.page, nil
		case e != nil || p == nil || cap(p.data) > size:
			return p, nil
		}
		kept[l] = &entry{page: p}
		bytes += cap(p.data)
		for order = append(order, l); bytes > size; order = order[1:] {
			if first := kept[order[0]]; first.used {
				first.used = false
				order = append(order, order[0])
			} else {
				bytes -= cap(first.data)
				delete(kept, order[0])
			}
		}
		return p, nil
	}
}

var writers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// compress is the handler of the stage.
func compress(_ context.Context, p *page) (*page, error) {
	var b bytes.Buffer
	z := writers.Get().(*gzip.Writer)
	defer writers.Put(z)
	z.Reset(&b)
	_, _ = z.Write(p.data)
	err := z.Close()
	return &page{data: b.Bytes(), size: int64(b.Len()), modified: p.modified, gzipped: true}, err
}

// takesGzip reports whether the Accept-Encoding of a request allows gzip. A request without one may be of a client that does not
// decompress. The weight of gzip itself goes before the weight of "*", and a weight of 0 forbids it.
func takesGzip(accept [][]byte) bool {
	takes, named := false, false
	for part := range strings.SplitSeq(string(bytes.Join(accept, []byte{','})), ",") {
		coding, parameters, weighted := strings.Cut(part, ";")
		weight := 1.0
		if weighted {
			name, value, _ := strings.Cut(strings.TrimSpace(parameters), "=")
			w, err := strconv.ParseFloat(value, 64)
			if !strings.EqualFold(name, "q") || err != nil {
				w = 0
			}
			weight = w
		}
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			takes, named = weight > 0 || named && takes, true
		case "*":
			takes = takes || !named && weight > 0
		}
	}
	return takes
}
