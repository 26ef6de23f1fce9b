package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
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

// A site has stages for the cache, for the disk and for compression.
type site struct {
	open     opener
	cpu      *stage.Pool
	cache    stage.Flow[lookup, *page]
	disk     *stage.Stage[string, *page]
	compress *stage.Stage[*page, *page]
}

const (
	largest  = 1 << 20 // bytes; a larger file is streamed instead of read at once
	block    = 4096
	inFlight = 256             // parallel reads, as many as an io_uring holds
	patience = 2 * time.Second // limits the wait for the disk and for the compression
)

// newSite returns a site whose stages run on the given scheduler, or on goroutines if the scheduler is nil. The cache has a size of cache
// bytes. It consists of parts, each with its own stage, so that the reactors do not all wait for one lock. There is a part for each reactor,
// but no part so small that it has room for a few files only.
func newSite(on suspend.Spawner, reactors, cache int, open opener) *site {
	parts := max(1, min(reactors, cache/(4*largest)))
	s := &site{open: open, cpu: stage.NewPool("cpu", runtime.GOMAXPROCS(0), on)}
	seed := maphash.MakeSeed()
	part := func(l lookup) uint64 { return maphash.String(seed, l.name) }
	s.cache = stage.Replicate(parts, part, func(i int) *stage.Stage[lookup, *page] {
		return stage.New(fmt.Sprint("cache ", i), newCache(cache/parts), stage.Options{On: on, Width: 1, Queue: 10_000, Reject: true})
	})
	s.disk = stage.New("disk", s.read, stage.Options{On: on, Width: inFlight, Queue: 5000, Reject: true, Delay: patience / 4})
	s.compress = stage.New("compress", compress, stage.Options{Pool: s.cpu, Queue: 1000, Reject: true})
	return s
}

func (s *site) close() error {
	return stage.Shutdown(context.Background(), s.cache, s.disk, s.compress)
}

// answer handles a request from fasthttp. It runs in the connection's task.
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

// noFile lists the errors that mean that the site has no file of the requested name.
var noFile = []error{fs.ErrNotExist, fs.ErrInvalid, fs.ErrPermission, syscall.EINVAL, syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.ELOOP}

// page passes a request through the stages and returns the file. If compressed is true, a text file is compressed.
func (s *site) page(ctx context.Context, name string, compressed bool) (*page, error) {
	compressed = compressed && isText(name)
	p, err := s.cache.Do(ctx, lookup{name: name, compressed: compressed})
	if err != nil || p != nil {
		return p, err
	}
	ctx, end := cancel.WithTimeout(ctx, patience)
	defer end()
	if p, err = s.disk.Do(ctx, name); err != nil || p.data == nil {
		return p, err
	}
	if compressed {
		if p, err = s.compress.Do(ctx, p); err != nil {
			return nil, err
		}
	}
	_ = s.cache.TrySubmit(ctx, lookup{name, compressed, p}) // an overloaded cache drops p, so the next request reads the file again
	return p, nil
}

// A page is a file, ready to be sent. Its data must not be modified. If the file exceeds the constant largest, data is nil and the file is
// streamed.
type page struct {
	data     []byte
	size     int64
	modified time.Time
	gzipped  bool
}

// read is the handler of the disk stage. If the file system rejects a direct read of the file, read repeats it as a normal read.
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
		return nil, errors.ErrUnsupported // the size does not fit into a 32-bit int
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

// roomFor rounds up the size of a buffer, so that Go allocates the buffer at a multiple of a block, as direct reads require.
func roomFor(size int64) int64 {
	for room := int64(block); room <= 32<<10; room *= 2 {
		if size <= room {
			return room
		}
	}
	return (size + 2*block - 1) / (2 * block) * (2 * block)
}

// An opener opens a file of the site. The end of ctx cancels operations on the file. If whole is true, the file must be read completely in
// one call.
type opener func(ctx context.Context, name string, whole bool) (file, error)

type file interface {
	io.ReaderAt
	Stat() (fs.FileInfo, error)
	Close() error
}

// onDisk returns an opener for the files of a directory. If direct is true, reads of whole files bypass the system's cache where the file
// system allows it.
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

// send answers with a page, or with the part of it that the client requests.
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
		h.Set("Vary", "Accept-Encoding") // caches must store both encodings separately
	}
	if p.gzipped {
		h.SetContentEncoding("gzip")
	}
}

// changed reports whether a client requires an older version of the page. Pages have no ETag, so If-Match succeeds only for "*".
func changed(c *fasthttp.RequestCtx, p *page) bool {
	if match := c.Request.Header.Peek("If-Match"); len(match) > 0 {
		return string(match) != "*"
	}
	since, err := http.ParseTime(string(c.Request.Header.Peek("If-Unmodified-Since")))
	return err == nil && p.modified.Truncate(time.Second).After(since)
}

// span returns the range of bytes that a client requests. It returns false if the page has no such range. A request for several ranges gets
// the whole page.
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

// A stream is a file that is sent while it is read, in chunks of 128 KB.
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

// A lookup is a request to the cache. If its field page is nil, the request gets a file; otherwise it stores this page.
type lookup struct {
	name       string
	compressed bool
	page       *page
}

// newCache returns the handler of a cache of up to size bytes. The handler's state needs no lock, because its stage has a width of 1.
// Eviction follows the second-chance algorithm: a page that was used since the last eviction check stays in the cache.
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

// compress is the handler of the compression stage.
func compress(_ context.Context, p *page) (*page, error) {
	var b bytes.Buffer
	z := writers.Get().(*gzip.Writer)
	defer writers.Put(z)
	z.Reset(&b)
	_, _ = z.Write(p.data)
	err := z.Close()
	return &page{data: b.Bytes(), size: int64(b.Len()), modified: p.modified, gzipped: true}, err
}

// takesGzip reports whether the Accept-Encoding headers of a request allow gzip. Without such a header the answer is not compressed,
// because the client may be unable to decompress it. A weight for gzip overrides the weight for "*", and a weight of 0 forbids gzip.
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
