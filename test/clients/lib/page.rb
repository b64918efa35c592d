# The code of a page of docs/clients, lines of TAP for what it does, and eight workers on one row. For Ruby.

require 'bigdecimal'
require 'date'
require 'json'

module Page
  WORKERS = 8
  @tests = 0

  # The blocks of the page in a language, or its first blocks under a heading.
  def self.blocks(page, language, heading = nil)
    text = File.read("#{ENV.fetch('ROOT')}/docs/clients/#{page}.md")
    text = text[/^## #{Regexp.escape(heading)}\n.*?(?=^## |\z)/m] if heading
    text.scan(/^```#{language}\n(.*?)^```$/m).flatten
  end

  # Runs the blocks of Ruby of the page.
  def self.load(page)
    eval(blocks(page, 'ruby').join("\n"), TOPLEVEL_BINDING, "#{page}.md")
  end

  # After the migrations of the page: all that connects from now on is the role app, which has on the tables of the page what the
  # page grants. On tables of tests it may do what plain SQL does. execute runs SQL as their owner.
  def self.as_app(execute)
    execute.('ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO app')
    execute.('ALTER DEFAULT PRIVILEGES GRANT USAGE ON SEQUENCES TO app')
    ENV['PGUSER'] = 'app'
  end

  def self.check(name)
    @tests += 1
    yield
    puts "ok #{@tests} - #{name}"
  rescue Exception => error
    @failed = true
    lines = ["#{error.class}: #{error.message}", *error.backtrace.grep_v(/rubygems|gems/)]
    puts "not ok #{@tests} - #{name}", lines.join("\n").gsub(/^/, '# ')
  end

  def self.equal(found, wanted)
    raise "found #{found.inspect}, wanted #{wanted.inspect}" unless found == wanted
  end

  # The error that the block raises, which is of that class.
  def self.error(type)
    yield
  rescue type => error
    error
  else
    raise "no #{type}"
  end

  # Until it is true; for as long as the whole suite may take.
  def self.eventually
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 180
    until yield
      raise 'it does not come true' if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.02
    end
  end

  # Every call of calls.json (lib/calls.mjs says what is in it). query takes SQL and values, and returns rows as arrays;
  # json and array make of a value what is given for it.
  def self.call_all(driver, query, json, array = ->(values) { "{#{values.join(',')}}" })
    calls = JSON.parse(File.read("#{__dir__}/calls.json"))
    calls['setup'].each { |sql| query.(sql, []) }
    calls['calls'].each do |call|
      instead = call.dig('drivers', driver)
      check("#{call['name']}, as on the page") { call_one(call.merge(instead), query, json, array) } if instead
      check(instead ? "#{call['name']} needs that" : call['name']) do
        instead ? error(StandardError) { call_one(call, query, json, array) } : call_one(call, query, json, array)
      end
    end
  end

  def self.call_one(call, query, json, array)
    query.('BEGIN', []) if call['transaction']
    (call['setup'] || []).each { |sql| query.(sql, []) }
    row, = query.(call['sql'], call['arguments'].map { |argument| value(argument, query, json, array) })
    equal(row&.map { |found| [nil, true, false].include?(found) ? found : found.to_s }, call['answer']) if call['answer']
  ensure
    query.('ROLLBACK', []) if call['transaction']
  end

  def self.value(argument, query, json, array)
    return array.(argument) if argument.is_a?(Array)
    return argument unless argument.is_a?(Hash)
    kind, value = argument.first
    case kind
    when '$bigint' then value.to_i
    when '$date' then Date.iso8601(value)
    when '$timestamp' then Time.iso8601(value)
    when '$bytes' then "\\x#{value}"
    when '$uuid', '$duration' then value
    when '$json' then json.(value)
    when '$query' then query.(value, []).first.first
    else json.(argument)
    end
  end

  # Every call of lost.json (lib/client.mjs says what is in it). owner and query take SQL and return the first value; reconnect
  # makes query work again after its connection was lost.
  def self.lose_all(owner, query, reconnect)
    lost = JSON.parse(File.read("#{__dir__}/lost.json"))
    lost['setup'].each { |sql| owner.(sql) }
    lost['calls'].each do |call|
      check "#{call['name']} that is lost in the middle changes nothing and can be repeated, also after an unknown outcome" do
        before = owner.(lost['state'])
        error(StandardError) { query.("WITH done AS MATERIALIZED (#{call['sql']}) SELECT (SELECT count(done) FROM done), pg_terminate_backend(pg_backend_pid()), pg_sleep(600)::text") }
        reconnect.call
        equal(owner.(lost['state']), before)
        equal(query.(call['sql']), call['first'])
        call['again'] ? equal(query.(call['sql']), call['again']) : error(StandardError) { query.(call['sql']) }
      end
    end
    lost['teardown'].each { |sql| owner.(sql) }
  end

  # Eight workers and a raw writer add one to the same number. The block is one attempt of a worker: it reads, calls
  # what it is given, writes, and returns whether the write was acknowledged. In each round all of them have read
  # before the raw writer writes, and write after it. Returns how many acknowledged additions there were.
  def self.race(rounds, raw)
    acknowledged = Queue.new
    read, written = Array.new(2) { Barrier.new(WORKERS + 1) }
    workers = Array.new(WORKERS) do
      Thread.new do
        rounds.times do
          read.wait # all of them begin with the same row
          meet = -> { read.wait && written.wait }
          until yield(meet)
            meet = -> {}
          end
          acknowledged << 1
        end
      end
    end
    rounds.times do
      2.times { read.wait }
      raw.call && acknowledged << 1
      written.wait
      raw.call && acknowledged << 1
    end
    workers.each(&:join)
    acknowledged.size
  end

  class Barrier
    def initialize(parties)
      @parties, @waiting, @round = parties, 0, 0
      @mutex, @all = Mutex.new, ConditionVariable.new
    end

    def wait
      @mutex.synchronize do
        round = @round
        if (@waiting += 1) == @parties
          @waiting = 0
          @round += 1
          @all.broadcast
        end
        @all.wait(@mutex) while round == @round
        true
      end
    end
  end

  def self.done
    puts "1..#{@tests}"
    exit !@failed
  end
end
