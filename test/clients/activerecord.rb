# The page docs/clients/activerecord.md, as a Rails application runs it.
# Prints TAP. Connects as the environment says (PGHOST, PGPORT, PGUSER, PGDATABASE). ROOT is the directory of the project.
# needs: ruby ruby-activerecord ruby-pg

require 'active_record'
require 'stringio'
require 'tmpdir'
require_relative 'lib/page'

def check(...) = Page.check(...)
def equal(...) = Page.equal(...)
def refused(state, &call) = equal(Page.error(ActiveRecord::StatementInvalid, &call).cause.result.error_field(PG::PG_DIAG_SQLSTATE), state)

ActiveRecord::Migration.verbose = false
OWNER = ENV.fetch('PGUSER')
def connect(user, database = ENV.fetch('PGDATABASE'))
  ActiveRecord::Base.establish_connection(adapter: 'postgresql', database: database, username: user, pool: 20, min_messages: 'error')
end
connect OWNER
Page.load('activerecord')
CreatePosts.new.migrate(:up)
CreatePayments.new.migrate(:up)

RAW = PG.connect
RAW.set_notice_receiver { }
Page.as_app(RAW.method(:exec))
connect ENV.fetch('PGUSER')
def raw(sql, *values) = RAW.exec_params(sql, values)
def one(...) = raw(...).values.first
def stored(post) = Post.where(id: post.id).pick(:lock_version)
def by_script(post) = raw("UPDATE posts SET title = 'of a script' WHERE id = $1 AND interlock.any_version(lock_version)", post.id)
def fresh = Post.create!(title: 'old')
def same(post) = equal(post.lock_version, stored(post))
STALE = ActiveRecord::StaleObjectError

# --- What is safe

check 'the version in memory is the stored one after create, save, touch, destroy and a failed save' do
  post = fresh
  same post
  post.update!(title: 'a')
  same post
  post.update!(title: 'a')
  same post
  post.touch
  same post
  other = Post.find(post.id)
  other.update!(title: 'b')
  version = post.lock_version
  Page.error(STALE) { post.update!(title: 'c') }
  equal(post.lock_version, version)
  equal(Post.find(post.id).title, 'b')
  post.reload.destroy!
  equal(Post.exists?(post.id), false)
end
check 'after several saves in one transaction, and after what is ignored' do
  post = fresh
  Post.transaction { 3.times { |n| post.update!(title: n.to_s) } }
  same post
  post.update_column(:views, 7)
  post.update!(title: 'x')
  same post
end
check 'after increment! of an ignored column it is ahead by one, and reload cures that' do
  post = fresh
  post.increment!(:views)
  same post
  post.update!(title: 'x')
  same post
end
check 'after insert_all, find' do
  id = Post.insert_all([{ title: 'x', created_at: Time.now, updated_at: Time.now }], returning: :id).first['id']
  same Post.find(id)
  Post.find(id).update!(title: 'y')
  same Post.find(id)
end
check 'after a rollback to a savepoint it is not, and reload cures that' do
  post = fresh
  Post.transaction do
    post.update!(title: 'kept')
    Post.transaction(requires_new: true) { post.update!(title: 'undone'); raise ActiveRecord::Rollback }
    equal(post.lock_version, stored(post) + 1)
    Page.error(STALE) { Post.transaction(requires_new: true) { post.update!(title: 'false conflict') } }
    post.reload.update!(title: 'again')
  end
  same post
  equal(stored(post), 2)
end
check 'ORM-5: nor after update_column, which reload cures too' do
  post = fresh
  post.update_column(:title, 'x')
  Page.error(STALE) { post.update!(title: 'y') }
  post.reload.update!(title: 'y')
  same post
end

{ save: ->(post) { post.update!(title: 'mine') }, destroy: ->(post) { post.destroy! }, touch: ->(post) { post.touch },
  'save of an object that is changed back' => ->(post) { post.title = 'mine'; post.save! } }.each do |name, call|
  check "#{name} of a stale object is StaleObjectError" do
    post = fresh
    by_script(post)
    Page.error(STALE) { call.(post) }
    equal(Post.find(post.id).title, 'of a script')
  end
end
check 'with_lock reads again' do
  post = fresh
  by_script(post)
  post.with_lock { post.update!(title: "#{post.title}, and mine") }
  equal(Post.find(post.id).title, 'of a script, and mine')
  same post
end

# These compare the version from some release on, and say nothing when they have changed no row.
SILENT = {
  update_columns: ->(post) { post.update_columns(title: 'mine') },
  delete: ->(post) { post.delete },
}
BLIND = {
  update_all: ->(post) { Post.where(id: post.id).update_all(title: 'mine') },
  delete_all: ->(post) { Post.where(id: post.id).delete_all },
  upsert_all: ->(post) { Post.upsert_all([{ id: post.id, title: 'mine', created_at: Time.now, updated_at: Time.now }]) },
}
if ActiveRecord::VERSION::MAJOR < 7
  BLIND.merge!(SILENT)
else
  SILENT.each do |name, call|
    check "#{name} of a stale object does nothing" do
      post = fresh
      by_script(post)
      call.(post)
      equal(Post.find(post.id).title, 'of a script')
    end
  end
end
BLIND.each do |name, call|
  check "#{name} overwrites" do
    post = fresh
    by_script(post)
    call.(post)
    equal(Post.find_by(id: post.id)&.title == 'of a script', false)
  end
end
raw("SELECT interlock.enable_versioning('posts', 'lock_version', ignore_columns => '{views}', blind_updates => 'reject')")
BLIND.each do |name, call|
  check "#{name} is refused where blind updates are" do
    post = fresh
    by_script(post)
    refused('IL011') { call.(post) }
  end
end
check 'what compares passes: save, touch, destroy, update_all with the version, any_version, counters' do
  post = fresh
  post.update!(title: 'x')
  equal(Post.where(id: post.id).of_version(post.lock_version).update_all(title: 'y'), 1)
  equal(Post.where(id: post.id).of_version(post.lock_version).update_all(title: 'z'), 0)
  equal(Post.where(id: post.id).any_version.update_all("views = views + 1"), 1)
  Post.update_counters(post.id, views: 1)
  Post.find(post.id).increment!(:views)
  post.reload
  equal([post.title, post.views], ['y', 3])
  post.destroy!
end

check 'ORM-4: a key that is used again meets the old version, and not with the default of the page' do
  [nil, Setting].each do |model|
    raw('DROP TABLE IF EXISTS settings CASCADE')
    raw('DROP SEQUENCE IF EXISTS settings_lock_version_start')
    raw('CREATE TABLE settings (name text PRIMARY KEY, value text)')
    raw("SELECT interlock.enable_versioning('settings', 'lock_version')")
    model ||= Class.new(ApplicationRecord) { self.table_name, self.primary_key = 'settings', 'name' }
    model.reset_column_information
    model.create!(name: 'mail', value: 'a')
    stale = model.find('mail')
    model.find('mail').destroy!
    model.create!(name: 'mail', value: 'b')
    if model == Setting
      Page.error(STALE) { stale.update!(value: 'stale') }
      equal(model.find('mail').value, 'b')
      equal(model.find('mail').lock_version, one("SELECT lock_version FROM settings").first.to_i)
    else
      stale.update!(value: 'stale')
      equal(model.find('mail').value, 'stale')
    end
  end
end

# --- Parameters, functions, errors

raw("CREATE TABLE orders (id uuid PRIMARY KEY, part int, day date, status text NOT NULL DEFAULT 'new', amount numeric, body bytea, tags text[],
  changed timestamptz NOT NULL DEFAULT now(), UNIQUE (part, day), CHECK (part IS NOT NULL AND day IS NOT NULL))")
raw('ALTER TABLE orders ALTER part SET NOT NULL, ALTER day SET NOT NULL')
raw("SELECT interlock.enable_versioning('orders', 'changed')")
raw(%q(SELECT interlock.define_transitions('orders', 'status', '{"new": ["paid"]}')))
ID = SecureRandom.uuid
def row(...) = ApplicationRecord.row(...)
def changed = row('SELECT changed::text AS v FROM orders WHERE id = ?', ID)['v']
def update(changes, key = ID, version = changed) =
  row("SELECT interlock.versioned_update('orders', ?, ?, ?) AS v", key, version, changes)['v']

check 'values of Ruby: nil, BigDecimal, times before 1970, arrays, uuid, bytes, NaN, numbers that are too large' do
  row("SELECT interlock.versioned_upsert('orders', ?, NULL, ?)", ID, { part: 1, day: Date.new(1969, 12, 31) }.to_json)
  update({ amount: BigDecimal('1.1'), tags: %w[a b], body: nil }.to_json)
  equal(one('SELECT amount::text, tags::text, day::text FROM orders'), ['1.1', '{a,b}', '1969-12-31'])
  update({ body: ActiveModel::Type::Binary.new.serialize("\x00\xff".b).then { |data| "\\x#{data.hex}" } }.to_json)
  equal(one("SELECT encode(body, 'hex') FROM orders"), ['00ff'])
  update({ amount: 'NaN' }.to_json)
  refused('22P02') { update({ part: 'x' }.to_json) }
  refused('22003') { update({ part: 2**70 }.to_json) }
  refused('22P02') { update({ part: 2 }.to_json, 7) }
  refused('22P02') { update({ part: 2 }.to_json, 'no uuid') }
  refused('22004') { update({ part: 2 }.to_json, nil) }
  Page.error(TypeError) { update({ part: 2 }) }
  equal(one('SELECT part FROM orders'), ['1'])
end
check 'a Time is a version to the microsecond; one without a fraction matches nothing' do
  time = Time.at(*one("SELECT extract(epoch FROM changed)::numeric * 1000000 FROM orders").map { |t| t.to_r / 1_000_000 })
  update({ amount: 2 }.to_json, ID, time.utc.iso8601(6))
  equal(Page.error(STALE) { update({ amount: 3 }.to_json, ID, Time.at(-1).utc) }.class, STALE)
end
check 'a time without its zone is read as UTC, the zone that ActiveRecord sets: one of another zone is another moment' do
  time = Time.iso8601(row("SELECT to_json(changed) #>> '{}' AS v FROM orders WHERE id = ?", ID)['v'])
  Page.error(STALE) { update({ amount: 4 }.to_json, ID, time.getlocal('+05:00').strftime('%F %T.%6N')) }
  update({ amount: 4 }.to_json, ID, time.getutc.strftime('%F %T.%6N'))
  equal(one('SELECT amount FROM orders'), ['4'])
end
check 'a key of several columns is JSON; BigDecimal is no version' do
  update({ amount: 5 }.to_json, { part: 1, day: Date.new(1969, 12, 31) }.to_json)
  refused('42883') { update({ amount: 6 }.to_json, ID, BigDecimal('1')) }
end
check 'retitle answers with an outcome' do
  post = fresh
  equal(Post.retitle(post.id, post.lock_version, 'x').values_at('outcome', 'version'), ['updated', 1])
  lost = Post.retitle(post.id, post.lock_version, 'y')
  equal([lost['outcome'], JSON.parse(lost['current'])['title']], %w[conflict x])
end
check 'a form that sends lock_version back is compared with what its user saw; one that does not overwrites' do
  post = fresh
  by_script(post)
  Page.error(STALE) { Post.find(post.id).update!(title: 'mine', lock_version: post.lock_version.to_s) }
  equal(Post.find(post.id).title, 'of a script')
  Post.find(post.id).update!(title: 'mine')
  equal(Post.find(post.id).title, 'mine')
end
check 'IL001, IL003 and P0002 are StaleObjectError, IL004 is LockWaitTimeout, others stay StatementInvalid' do
  post = fresh
  error = Page.error(STALE) { row("SELECT interlock.versioned_update('posts', ?, ?, ?)", post.id, 9, '{}') }
  equal(error.cause.result.error_field(PG::PG_DIAG_SQLSTATE), 'IL001')
  equal(JSON.parse(error.cause.result.error_field(PG::PG_DIAG_MESSAGE_DETAIL))['version'], 0)
  equal(error.message.include?('version conflict in table "posts"'), true)
  row("SELECT interlock.transition('orders', ?, 'new', 'paid')", ID)
  Page.error(STALE) { row("SELECT interlock.transition('orders', ?, 'new', 'paid')", ID) }
  refused('IL002') { row("SELECT interlock.transition('orders', ?, 'paid', 'new')", ID) }
  raw("SELECT interlock.enable_marker('posts')")
  Post.reset_column_information
  equal(row("SELECT * FROM interlock.lock_row('posts', ?, ?, ?)", post.id, 'anna', 10.minutes.iso8601)['locked'], true)
  Page.error(ActiveRecord::LockWaitTimeout) { Post.find(post.id).update!(title: 'x') }
  Page.error(STALE) { row("SELECT interlock.save_row('posts', ?, 'bert', '{}')", post.id) }
  Page.error(STALE) { row("SELECT interlock.assert_lease('no lease', 1)") }
  Page.error(STALE) { row("SELECT interlock.versioned_update('posts', 0, 0, '{}')") }
  Page.error(STALE) { row("SELECT interlock.idempotency_assert('POST /payments', 'k', 1)") }
end
check 'retrying runs the whole block again, and gives up' do
  post = fresh
  attempts = 0
  retrying do
    mine = Post.find(post.id)
    by_script(post) if (attempts += 1) < 3
    mine.update!(title: "attempt #{attempts}")
  end
  equal([attempts, post.reload.title], [3, 'attempt 3'])
  Page.error(STALE) { retrying(2) { mine = Post.find(post.id); by_script(post); mine.update!(title: 'x') } }
end
check 'what reading again cures is repeated, and what is hopeless is tried once' do
  tries = { 'IL001' => 2, '40001' => 2, '40P01' => 2, 'IL002' => 1, 'IL003' => 1, 'IL004' => 1, 'IL005' => 1,
            'IL006' => 1, 'IL007' => 1, 'IL008' => 1, 'P0002' => 1 }
  counted = tries.to_h do |code, _|
    count = 0
    Page.error(ActiveRecord::ActiveRecordError) do
      retrying(2) do
        count += 1
        Post.connection.execute("DO 'BEGIN RAISE EXCEPTION USING ERRCODE = ''#{code}''; END'")
      end
    end
    [code, count]
  end
  equal(counted, tries)
end

# --- Eight workers

# One attempt of a worker; true when it was acknowledged.
def add_one(id, meet)
  Post.connection_pool.with_connection do
    post = Post.find(id)
    meet.call
    post.update!(title: (post.title.to_i + 1).to_s)
  end
  true
rescue STALE
  false
end
def lost(rounds, trigger)
  raw("ALTER TABLE posts #{trigger} TRIGGER USER")
  post = Post.create!(title: '0')
  acknowledged = Page.race(rounds, -> { raw("UPDATE posts SET title = title::int + 1 WHERE id = $1 AND interlock.any_version(lock_version)", post.id) }) { |meet| add_one(post.id, meet) }
  acknowledged - post.reload.title.to_i
end
check 'eight workers and a script on one row: without versioning updates of the script are lost' do
  without = lost(5, 'DISABLE')
  puts "# lost without versioning: #{without} of 50"
  equal(without >= 5, true)
end
check 'and none with it' do
  equal(lost(5, 'ENABLE'), 0)
end

# --- Leases, idempotency

def holder(key) = one('SELECT token FROM interlock.lease_of($1)', key)&.first&.to_i
check 'a lock of a name lasts as long as the transaction of the page, and protects nothing outside of one' do
  free = -> { one("SELECT interlock.try_lock_key('one')") }
  one_at_a_time('one') { equal(free.call, ['f']) }
  equal(free.call, ['t'])
  ApplicationRecord.row('SELECT interlock.lock_key(?)', 'one')
  equal(free.call, ['t'])
end
check 'a report is made by the holder, and not beside it' do
  make_report('monday')
  equal(Post.where('title LIKE ?', 'monday%').count, 2)
  Lease.hold('report/tuesday', 1000) { |lease| equal(holder('report/tuesday'), lease.token); make_report('tuesday') }
  equal(Post.where('title LIKE ?', 'tuesday%').count, 0)
  equal(holder('report/tuesday'), nil)
end
check 'it is renewed at half of its ttl, and given back after an error' do
  Page.error(ZeroDivisionError) do
    Lease.hold('short', 20) do
      ends = -> { one("SELECT extract(epoch FROM expires_at) FROM interlock.lease_of('short')").first.to_f }
      first = ends.call
      Page.eventually { ends.call > first }
      1 / 0
    end
  end
  equal(holder('short'), nil)
end
check 'when it is broken, the work is stopped and cannot commit' do
  Lease.hold('broken', 2) do |lease|
    raw("SELECT interlock.break_lease('broken', 'test')")
    Page.error(STALE) { Post.transaction { lease.assert!; fresh } }
    Page.eventually { lease.lost? }
  end
end
check 'LEA-4: an acquire is repeated by its holder' do
  2.times { |n| equal(row("SELECT outcome FROM interlock.acquire_lease('again', '1 min', holder => 'request 7', resume => true)")['outcome'], %w[acquired resumed][n]) }
end

def pay(key, request) = Payment.call('HTTP_IDEMPOTENCY_KEY' => key, 'app.customer' => 'anna', 'rack.input' => StringIO.new(request.to_json))
check 'an endpoint charges once: 201, the same again, 422, 400' do
  first = pay('k-1', { amount: '9.90' })
  equal([first[0], JSON.parse(first[2][0])['amount']], [201, '9.9'])
  equal(pay('k-1', { amount: '9.90' }), first)
  equal(pay('k-1', { amount: '8.00' })[0], 422)
  [nil, ''].each { |none| equal(pay(none, {})[0], 400) }
  equal(Payment.count, 1)
end
check 'an error leaves the key free' do
  Page.error(KeyError) { pay('k-2', {}) }
  equal(pay('k-2', { amount: 1 })[0], 201)
end
check 'eight requests at once are one payment' do
  answers = Array.new(8) { Thread.new { Payment.connection_pool.with_connection { pay('k-3', { amount: 3 }) } } }.map(&:value)
  equal(answers.map(&:first).uniq - [201, 409], [])
  equal(Payment.where(amount: 3).count, 1)
end

# --- Connections that break

LOST = {
  versioned_update: ->(post) { row("SELECT interlock.versioned_update('posts', ?, ?, ?)", post.id, post.lock_version, { title: 'x' }.to_json) },
  save: ->(post) { post.update!(title: 'x') },
  lock_row: ->(post) { row("SELECT * FROM interlock.lock_row('posts', ?, 'anna')", post.id) },
  lock_key: ->(post) { row("SELECT interlock.lock_key(?)", "post:#{post.id}") },
  idempotency_claim: ->(post) { row("SELECT * FROM interlock.idempotency_claim('lost', ?)", post.id.to_s) },
  run_once: ->(post) { row("SELECT * FROM interlock.run_once('lost', ?, 'charge(jsonb)', '{}')", post.id.to_s) },
}
raw("CREATE FUNCTION charge(jsonb) RETURNS jsonb LANGUAGE sql AS $$INSERT INTO payments (amount) VALUES (77) RETURNING '{}'::jsonb$$")
raw("SELECT interlock.define_idempotency_scope('lost'), interlock.grant_idempotency_scope('lost', 'app')")
LOST.each do |name, call|
  check "a connection that breaks after #{name}, before the commit, leaves nothing; the next one does it" do
    post = fresh
    error = Page.error(ActiveRecord::StatementInvalid) do
      Post.transaction do
        call.(Post.find(post.id))
        raw('SELECT pg_terminate_backend($1, 60000)', row('SELECT pg_backend_pid() AS pid')['pid'])
        row('SELECT 1')
      end
    end
    equal([PG::ConnectionBad, PG::UnableToSend].any? { |type| error.cause.is_a?(type) }, true)
    Post.connection.reconnect!
    equal([stored(post), Post.find(post.id).title, Payment.where(amount: 77).count], [0, 'old', 0])
    Post.transaction { call.(Post.find(post.id)) }
    raw('DELETE FROM payments WHERE amount = 77')
  end
end
check 'what is repeated after its commit was not answered is a conflict, or the same answer' do
  post = fresh
  LOST[:versioned_update].(post)
  Page.error(STALE) { LOST[:versioned_update].(post) }
  2.times { |n| equal(LOST[:run_once].(post)['outcome'], %w[completed replay][n]) }
end

Page.lose_all(->(sql) { one(sql)&.first }, ->(sql) { ApplicationRecord.connection.select_value(sql) }, -> { ApplicationRecord.connection.reconnect! })

# --- Schema tools

connect OWNER
COPY = "#{ENV['PGDATABASE']}_copy"
def in_copy(load)
  raw("DROP DATABASE IF EXISTS #{COPY}")
  raw("CREATE DATABASE #{COPY}")
  connect OWNER, COPY
  load.call
  Post.reset_column_information
  yield
ensure
  connect OWNER
end
def findings = ApplicationRecord.connection.select_values("SELECT finding FROM interlock.advise() WHERE severity = 'broken'")
def guards = ApplicationRecord.connection.select_rows('SELECT rel::text, mechanism, settings::text FROM interlock.guards ORDER BY 1, 2, 3')
def schema_rb
  dumper = ActiveRecord::SchemaDumper
  source = dumper.method(:dump).parameters[0][1] == :pool ? ActiveRecord::Base.connection_pool : ApplicationRecord.connection
  StringIO.new.tap { |file| dumper.dump(source, file) }.string
end
raw("SELECT interlock.enable_history('posts')")
IGNORED = ActiveRecord::SchemaDumper.ignore_tables
check 'ORM-3: schema.rb has every table, and the default of the version' do
  ignored = IGNORED.dup
  IGNORED.clear
  everything = schema_rb
  IGNORED.concat(ignored)
  equal(everything.include?('Could not dump'), false)
  equal(everything.scan(/create_table "(\w+)"/).flatten.sort, %w[orders payments posts posts_history settings])
  equal(everything[/lock_version.*first_version/].nil?, false)
  equal(schema_rb.include?('posts_history'), false)
end
marked = schema_rb
raw("SELECT interlock.disable_marker('posts')")
raw('ALTER TABLE posts DROP lock_status, DROP lock_by, DROP lock_time, DROP lock_until, DROP lock_reason')
dumped = schema_rb
Dir.mktmpdir do |directory|
  file = "#{directory}/guards.json"
  Guards.dump(file)
  schema = -> { eval(dumped, TOPLEVEL_BINDING, 'schema.rb') }
  check 'ORM-1: it loads, without triggers, which is found' do
    in_copy(schema) do
      equal(findings.uniq, ['no version trigger is there, and the default of column "lock_version" calls first_version'])
      post = fresh
      ApplicationRecord.connection.execute("UPDATE posts SET title = 'of a script'")
      post.update!(title: 'mine')
    end
  end
  check 'with the settings after it, it is guarded as before' do
    in_copy(-> { schema.call; Guards.load(file) }) do
      equal(findings, [])
      post = fresh
      ApplicationRecord.connection.execute("UPDATE posts SET title = 'of a script' WHERE interlock.any_version(lock_version)")
      Page.error(STALE) { post.update!(title: 'mine') }
      equal(schema_rb, dumped)
    end
  end
  if ActiveRecord::VERSION::MAJOR < 7
    check 'ActiveRecord 6 loses the time zone of a marker, which is refused' do
      in_copy(-> { eval(marked, TOPLEVEL_BINDING, 'schema.rb') }) do
        refused('42804') { row("SELECT interlock.enable_marker('posts')") }
      end
    end
  end
  check 'structure.sql has all of it' do
    IGNORED.clear # for schema.rb; a pattern is no table for pg_dump
    structure = "#{directory}/structure.sql"
    config = ->(database) { { adapter: 'postgresql', database: database, host: ENV['PGHOST'], username: OWNER }.stringify_keys }
    tasks = ActiveRecord::Tasks::DatabaseTasks
    tasks.structure_load_flags = ["-o#{directory}/load.out"]
    tasks.structure_dump(config.(ENV['PGDATABASE']), structure)
    guarded = guards
    in_copy(-> { tasks.structure_load(config.(COPY), structure) }) do
      equal(findings, [])
      equal(guards, guarded)
    end
  end
end
raw("DROP DATABASE #{COPY}")
# Every function, with the values of $1 to $n as sanitize_sql writes them.
def literals(sql, values)
  ApplicationRecord.sanitize_sql([sql.gsub(/\$(\d+)/, ':value\1'), values.each_with_index.to_h { |value, n| [:"value#{n + 1}", value] }])
end
Page.call_all('activerecord', ->(sql, values) { ApplicationRecord.connection.select_rows(literals(sql, values)) }, :to_json.to_proc)
Page.done
