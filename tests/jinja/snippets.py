"""Small templates, one feature each, and the variables that they all are rendered with."""

DATA = {
    "name": "Ada",
    "text": "  Hello, World!\n\tDon't  stop — naïve Straße ΟΔΥΣΣΕΥΣ 日本 😀  ",
    "empty": "",
    "number": 7,
    "negative": -3,
    "ratio": 2.5,
    "big": 9007199254740993,
    "yes": True,
    "no": False,
    "nothing": None,
    "words": ["pear", "Apple", "fig", "apple", "Fig"],
    "numbers": [3, 1, 2, 3, -5],
    "mixed": [1, "a", None, True, 2.0, [1, 2], {"k": "v"}],
    "point": {"x": 1, "y": {"z": [10, 20, {"deep": "value"}]}, "items": "an entry", "9": "nine"},
    "people": [
        {"name": "bob", "age": 30, "tags": ["a", "b"], "city": "Rome"},
        {"name": "Alice", "age": 25, "tags": [], "city": "oslo"},
        {"name": "carol", "age": 30, "tags": ["c"]},
    ],
    "quotes": "it's \"quoted\" \\ <b>&amp;</b>\u0007\u200b\u2028\u00e9",
    "lines": "one\ntwo\r\n\n  three\u2028four\x0bfive\n",
    "markup": "<think>first</think>second</think>third",
    "tree": [{"v": 1, "kids": [{"v": 2, "kids": []}, {"v": 3, "kids": [{"v": 4, "kids": []}]}]}],
}

LITERALS = """
1 | 1.0 | 1.5e3 | 1e5 | 1_000 | 0x1F | 0o17 | 0b101 | 'a' | "b" | 'it\\'s' | "tab\\there" | '\\x41\\u00e9\\U0001F600'
'a' 'b' "c" | '\\d\\q' | 'line\\nbreak' | true | True | false | none | None | [] | [1, 2] | [1, 2,] | (1,) | ()
(1, 2) | (1) | {} | {'a': 1, "b": [2]} | {1: 2, none: 3, true: 4} | [1, 'a', none, true, 2.5, {'k': 'v'}] | 1, 2
'😀é' | 'a\\\nb' | '\\101' | 1.0e-7 | 123456789012345680.0 | 1e16 | 0.1 + 0.2 | 1e100 | 100000.0 | 3.14159
""".strip().replace("\n", " | ").split(" | ")

OPERATORS = """
1 + 2 * 3 - 4 | 7 / 2 | 7 // 2 | -7 // 2 | 7 % 3 | -7 % 3 | 7 % -3 | 2 ** 10 | 2 ** -1 | -2 ** 2 | 2 ** 3 ** 2
7.5 // 2 | -7.5 % 2 | 1.0 * 3 | 'a' * 3 | 3 * 'ab' | [1] * 2 | [1] + [2] | (1,) + (2,) | 'a' + 'b' | 'a' ~ 1 ~ none ~ true
1 ~ 2 + 3 | 2 * 'a' ~ 'b' | 1 < 2 | 1 < 2 < 3 | 1 < 3 < 2 | 1 == 1.0 | 1 == true | 'a' < 'b' | 'Z' < 'a' | [1, 2] < [1, 3]
1 != 2 | 'a' == 1 | none == none | none == false | [] == [] | {'a': 1} == {'a': 1.0} | (1,) == [1] | 'a' in 'cat' | 'x' not in 'cat'
1 in [1, 2] | true in [1] | 'x' in point | 'q' in point | none in [none] | not true | not not 'a' | not '' | 1 and 0 | 0 or 'x'
'' or none or [] | 'a' and 'b' | 1 if true else 2 | 1 if false else 2 | 1 if false | 'a' if no else 'b' if no else 'c'
not 1 == 2 | -number | +number | - ratio | -yes | number is odd and ratio > 2 | 5 > 4 > 3 | 5 >= 5 <= 6 | 10 % 4 * 2
missing == missing | missing == none | missing in [1] | nothing is none | 'a' in missing | 7 // 2.0 | 1 / 3 | 2 ** 0.5
1 + true | true + true | 'x' ~ [1, 'a'] ~ {'b': none} | 1 == 1 == 1 | 'b' in ['a', 'b'] in [true] | 2 ** 62 | 'a' 'b' ~ 'c'
(1 if yes else 2) + 3 | 1 + 2 if no else 3 + 4 | not 'a' in 'b' | 'é' < 'z' | 'ab' * 0 | 'ab' * -1 | [1, [2, 3]] == [1, [2, 3.0]]
""".strip().replace("\n", " | ").split(" | ")

ACCESS = """
point.x | point['x'] | point.y.z[2].deep | point['y']['z'][-1]['deep'] | point.y.z.0 | point.nope | point.nope is defined
point['nope'] | words[0] | words[-1] | words[99] | words[1:3] | words[:2] | words[-2:] | words[::-1] | words[::2] | words[4:0:-2]
words[10:] | words[:-10] | text[2:7] | text[-5:] | text[::-1] | text[0] | text[-3] | '日本語'[1] | '日本語'[1:] | '日本語'[::-2]
(1, 2, 3)[1:] | name[0] ~ name[-1] | point['9'] | point.items is defined | point['items'] | {'a': {'b': 1}}.a.b | [[1, 2], [3]][0][1]
'abc'[5:] | 'abc'[1:1] | 'abc'[2:1] | mixed[5][0] | mixed[6].k | people[0].tags[1] | people[-1]['city'] | words.0 | [1,2,3][true]
numbers[1:][0] | numbers[-100:2] | loop is defined | missing | missing is defined | name.nope | number.nope
""".strip().replace("\n", " | ").split(" | ")

METHODS = """
text.strip() | text.lstrip() | text.rstrip() | 'xxaxx'.strip('x') | 'abcab'.strip('ab') | 'abcab'.lstrip('ba') | 'abcab'.rstrip('b')
'a b  c'.split() | ' a b '.split() | 'a,b,,c'.split(',') | 'a,b,c'.split(',', 1) | 'a b c'.split(none, 1) | ' a  b  c '.split(maxsplit=1)
'a,b,c'.rsplit(',', 1) | '  a b c '.rsplit(none, 1) | 'a--b--c'.rsplit('--') | ''.split() | ''.split(',') | markup.split('</think>')
markup.split('</think>')[-1].lstrip('\\n') | markup.split('</think>')[0].rstrip('\\n').split('<think>')[-1] | lines.splitlines()
lines.splitlines(true) | 'a=b=c'.partition('=') | 'a=b=c'.rpartition('=') | 'abc'.partition('x') | 'abc'.rpartition('x')
name.startswith('A') | name.startswith(('x', 'A')) | name.endswith('da') | name.startswith('d', 1) | name.endswith('d', 0, 2) | ''.startswith('')
'aaa'.replace('a', 'b') | 'aaa'.replace('a', 'b', 2) | 'abc'.replace('', '-') | 'abc'.replace('', '-', 2) | ''.replace('', 'x')
text.upper() | text.lower() | text.title() | text.capitalize() | 'ǆ ß ŉ'.upper() | 'ǆ ß'.title() | 'ΑΣ ΑΣΑ Σ'.lower() | 'aBc'.swapcase()
', '.join(words) | ''.join(['a', 'b']) | '-'.join('abc') | 'x'.join([]) | 'abc'.find('c') | 'abc'.find('x') | 'abcabc'.rfind('b') | '日本語'.find('語')
'abc'.find('b', 2) | 'banana'.count('an') | 'abc'.count('') | 'abc'.index('b') | 'a'.isdigit() | '12'.isdigit() | 'ab'.isalpha() | 'a1'.isalnum()
' '.isspace() | ''.isspace() | 'AB'.isupper() | 'ab1'.islower() | 'Ab'.islower() | '7'.zfill(3) | '-7'.zfill(4) | 'a'.ljust(3) ~ '|'
'a'.rjust(3, '.') | 'ab'.center(5, '*') | 'abc'.center(6, '*') | 'foobar'.removeprefix('foo') | 'foobar'.removesuffix('bar') | 'foobar'.removeprefix('x')
'{} and {}'.format('a', 1) | '{1}{0}'.format('a', 'b') | '{x}-{y}'.format(x=1, y=[2]) | '{{}}'.format() | '%s-%d' % ('a', 3) | '%s' % none
'%05.2f|%x|%-4s|%+d' % (3.14159, 255, 'ab', 5) | '%s' % [1, 'a'] | '%(a)s %(b)03d' % {'a': 'x', 'b': 7} | '100%%' % () | '%r' % 'it'
point.get('x') | point.get('nope') | point.get('nope', 'd') | point.keys()|list | point.items()|list | point.values()|list
{'a': 1}.keys()|list | {'a': 1, 'b': 2}.items()|list | {'a': 1}.values()|list | numbers.index(2) | numbers.count(3) | 'a\\tb'.split('\\t')
'one two'.split(' ')[1] | 'AbC'.lower().upper() | name.lower().startswith('ad') | '١٢'.isdigit() | 'x'.join(words).split('x') | 'a\\n\\nb'.split('\\n')
point.copy().x | 'ﬁ'.upper() | 'İ'.lower() | 'straße'.title() | "don't".title() | 'a.b-c'.title() | 'aaa'.rsplit('a', 1) | 'abc'.rindex('c')
""".strip().replace("\n", " | ").split(" | ")

FILTERS = r"""
text|trim ¦ 'xxaxx'|trim('x') ¦ name|upper ¦ name|lower ¦ 'hello world-foo (bar)'|title ¦ 'hELLO'|capitalize ¦ 'aXbX'|replace('X', '-') ¦ 'aXbX'|replace('X', '-', 1)
words|length ¦ text|length ¦ point|count ¦ missing|length ¦ words|first ¦ words|last ¦ []|first ¦ []|last ¦ 'abc'|first ¦ 'abc'|last ¦ point|first
words|join ¦ words|join(', ') ¦ people|join(', ', attribute='name') ¦ mixed|join('/') ¦ missing|join ¦ [1, 2]|join(d='-') ¦ 'abc'|join('.')
people|map(attribute='name')|list ¦ people|map(attribute='city', default='?')|list ¦ words|map('upper')|list ¦ words|map('replace', 'p', 'q')|join(' ')
numbers|select('odd')|list ¦ numbers|reject('odd')|list ¦ mixed|select|list ¦ mixed|reject|list ¦ numbers|select('gt', 1)|list ¦ mixed|select('string')|list
people|selectattr('city')|map(attribute='name')|list ¦ people|selectattr('age', 'equalto', 30)|list|length ¦ people|rejectattr('age', '==', 30)|map(attribute='name')|join
people|selectattr('city', 'undefined')|list|length ¦ people|rejectattr('tags')|list|length ¦ people|map(attribute='tags')|sum(start=[]) ¦ people|sum(attribute='age')
words|list ¦ 'abc'|list ¦ point|list ¦ 5|string ¦ none|string ¦ true|string ¦ [1]|string ~ 'x' ¦ '42'|int ¦ '4.7'|int ¦ 'x'|int ¦ 'x'|int(5) ¦ 3.9|int ¦ -3.9|int
'ff'|int(base=16) ¦ '0x1f'|int(0, 16) ¦ none|int ¦ true|int ¦ ' 12 '|int ¦ '1_000'|int ¦ '1e3'|int ¦ '1.5'|float ¦ 'x'|float ¦ 3|float ¦ 'nan'|float ¦ '-inf'|float ¦ none|float(1.5)
point|items|list ¦ missing|items|list ¦ {'b': 1, 'A': 2}|dictsort ¦ {'b': 1, 'A': 2}|dictsort(true) ¦ {'b': 1, 'A': 2}|dictsort(false, 'value') ¦ {'b': 1, 'A': 2}|dictsort(reverse=true)
words|sort ¦ words|sort(case_sensitive=true) ¦ words|sort(reverse=true) ¦ people|sort(attribute='age')|map(attribute='name')|list ¦ people|sort(attribute='age,name')|map(attribute='name')|list
numbers|sort ¦ numbers|min ¦ numbers|max ¦ words|min ¦ words|max ¦ people|max(attribute='age') ¦ []|min is undefined ¦ words|unique|list ¦ words|unique(true)|list ¦ numbers|unique|list
people|unique(attribute='age')|map(attribute='name')|list ¦ words|reverse|list ¦ 'abc'|reverse ¦ point|reverse|list ¦ numbers|sum ¦ []|sum ¦ -5|abs ¦ 2.5|abs ¦ -2.5|abs
2.5|round ¦ 3.5|round ¦ 2.675|round(2) ¦ 42.55|round(1, 'floor') ¦ 42.51|round(1, 'ceil') ¦ 42|round ¦ 1234.5|round(-2) ¦ 5|round(0, 'ceil') ¦ 0.5|round|int
numbers|batch(2)|list ¦ numbers|batch(2, 0)|list ¦ numbers|slice(2)|list ¦ numbers|slice(3, 'x')|list ¦ quotes|e ¦ quotes|escape ¦ quotes|safe ¦ '%s=%d'|format('a', 3) ¦ '%(n)s'|format(n=1)
missing|default('d') ¦ missing|d ¦ ''|default('d') ¦ ''|default('d', true) ¦ none|default('d') ¦ none|default('d', boolean=true) ¦ name|default('d')
lines|indent ¦ lines|indent(2, true) ¦ lines|indent(2, blank=true) ¦ lines|indent('> ', first=true, blank=true) ¦ ''|indent ¦ 'a'|indent ¦ 'a\n'|indent ¦ 'a\nb\n\nc'|indent(width=1)
'a b c'|wordcount ¦ text|wordcount ¦ 'foo bar baz qux'|truncate(9) ¦ 'foo bar baz qux'|truncate(9, true) ¦ 'foo bar baz qux'|truncate(11) ¦ 'foo bar baz qux'|truncate(11, false, '..', 0)
point|tojson ¦ mixed|tojson ¦ quotes|tojson ¦ text|tojson ¦ point|tojson(indent=2) ¦ mixed|tojson(indent=4) ¦ {}|tojson(indent=2) ¦ []|tojson ¦ {'b': 1, 'a': [2]}|tojson(sort_keys=true)
text|tojson(ensure_ascii=true) ¦ point|tojson(separators=(',', ':')) ¦ point|tojson(indent=0) ¦ point|tojson(indent='\t') ¦ {1: 2, none: 3, true: 4, 1.5: 5}|tojson ¦ 1e16|tojson ¦ 'a/b'|tojson ¦ none|tojson
(1, 2)|tojson ¦ big|tojson ¦ ratio|tojson ¦ point|tojson|length ¦ [1, [2, [3, {}]]]|tojson(indent=1) ¦ '\u007f\u0001'|tojson ¦ words|map('length')|list ¦ words|map('first')|join
point|attr('x') is undefined ¦ words|attr('count') is defined ¦ mixed|map('string')|join('|') ¦ name|upper|lower|title ¦ -5|abs|string ¦ (1 - 6)|abs ¦ words|map('upper')|map('lower')|unique|list
numbers|map('string')|join(' ')|upper ¦ people|map(attribute='tags.0')|list ¦ people|map(attribute='tags')|map('join', '+')|list ¦ mixed|selectattr('k')|list ¦ numbers|select('divisibleby', 3)|list
numbers|select('in', [1, 3])|list ¦ quotes ¦ [quotes] ¦ [text] ¦ {'k': quotes} ¦ ['\x00\x7f\xa0\xad'] ¦ [1e16, 1.0, 0.1, -0.0] ¦ words|reverse|first ¦ words|select|first ¦ 'a'|center(5) ~ '|'
""".strip().replace("\n", " ¦ ").split(" ¦ ")

TESTS = """
name is defined | missing is undefined | missing is not defined | nothing is none | nothing is not none | name is string | number is string
number is number | yes is number | ratio is number | number is integer | yes is integer | ratio is float | number is float | yes is boolean | number is boolean
yes is true | no is false | number is true | point is mapping | words is mapping | words is iterable | name is iterable | number is iterable | missing is iterable
words is sequence | name is sequence | point is sequence | number is sequence | words|map('upper') is sequence | number is odd | number is even | -3 is odd
number is divisibleby 7 | number is divisibleby(2) | number is eq 7 | number is equalto(7) | number is ne 7 | number is gt 3 | number is ge 7 | number is lt 3 | number is le 7
number is in [7, 8] | 'a' is in 'cat' | name is sameas name | none is sameas none | name is lower | 'abc' is lower | 'ABC' is upper | 'upper' is filter | 'nope' is filter | 'defined' is test
range is callable | name is callable | point.x is defined and point.x == 1 | not missing is defined | missing is defined or 'x' | point.items is callable | words is not string
'a' is string == true | number is not divisibleby 2 | (1, 2) is sequence | () is iterable | 1.0 is integer | missing is none | missing is string | none is mapping | [] is sequence
""".strip().replace("\n", " | ").split(" | ")

STATEMENTS = [
    "{% if yes %}a{% elif no %}b{% else %}c{% endif %}",
    "{% if no %}a{% elif yes %}b{% else %}c{% endif %}",
    "{% if no %}a{% elif nothing %}b{% else %}c{% endif %}",
    "{% if missing %}a{% endif %}-",
    "{% for w in words %}{{ w }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "{% for w in words %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}"
    "{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}",
    "{% for w in words if w|length > 3 %}{{ loop.index }}/{{ loop.length }} {{ w }} {% else %}none{% endfor %}",
    "{% for w in [] %}x{% else %}empty{% endfor %}",
    "{% for w in words if w == 'zzz' %}x{% else %}empty{% endfor %}",
    "{% for k, v in point.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in point %}{{ k }}{% endfor %}",
    "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for c in 'aé😀' %}[{{ c }}]{% endfor %}",
    "{% for i in range(5) %}{{ i }}{% endfor %}{% for i in range(2, 10, 3) %}{{ i }}{% endfor %}"
    "{% for i in range(3, 0, -1) %}{{ i }}{% endfor %}",
    "{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% for i in [1, 2] %}{% for j in [1, 2, 3] %}{% if j == 2 %}{% break %}{% endif %}{{ i }}{{ j }} {% endfor %}{{ loop.index }}{% endfor %}",
    "{% for i in [1, 1, 2] %}{{ loop.changed(i) }}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{% for n in tree recursive %}{{ n.v }}@{{ loop.depth }}{% if n.kids %}({{ loop(n.kids) }}){% endif %}{% endfor %}",
    "{% for i in missing %}x{% else %}y{% endfor %}",
    "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}",
    "{% for x in (words if yes else numbers) %}{{ x }}{% endfor %}",
    "{% for m in words[1:] %}{{ m }}{{ loop.index0 + 1 }}{% endfor %}",
    "{% set x = 1 %}{{ x }}{% set x = x + 1 %}{{ x }}",
    "{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}",
    "{% set x = 1 %}{% if yes %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% for i in [1] %}{% set inner = 5 %}{% endfor %}{{ inner is defined }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d) = [3, 4] %}{{ c }}{{ d }}",
    "{% set t = 1, 2 %}{{ t }}",
    "{% set ns = namespace(n=0, found=false) %}{% for i in numbers %}{% set ns.n = ns.n + i %}"
    "{% if i == 2 %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.n }} {{ ns.found }} {{ ns.nope is defined }}",
    "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns['b'] }}",
    "{% set x %}a{{ name }}b{% endset %}[{{ x }}]{{ x|length }}",
    "{% set x | upper | replace('A', '-') %}a{{ name }}b{% endset %}{{ x }}",
    "{% macro m(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }};{{ m(1, 3) }};{{ m(1, c='y') }};{{ m(b=5, a=4) }};{{ m() }}",
    "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}",
    "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, k='v') }}",
    "{% macro m(x) %}[{{ x }}{{ caller() }}]{% endmacro %}{% call m(1) %}in {{ name }}{% endcall %}",
    "{% macro m(xs) %}{% for x in xs %}{{ caller(x) }}{% endfor %}{% endmacro %}{% call(v) m(numbers) %}<{{ v }}>{% endcall %}",
    "{% macro fact(n) %}{% if n < 2 %}1{% else %}{{ n * fact(n - 1)|int }}{% endif %}{% endmacro %}{{ fact(6) }}",
    "{% macro show(v, d=0) %}{% if v is mapping %}{% for k, x in v|items %}{{ '  ' * d }}{{ k }}:\n{{ show(x, d + 1) }}{% endfor %}"
    "{% elif v is iterable and v is not string %}{% for x in v %}{{ show(x, d + 1) }}{% endfor %}{% else %}{{ '  ' * d }}{{ v }}\n{% endif %}{% endmacro %}{{ show(point) }}",
    "{% macro outer() %}{{ x }}{% endmacro %}{% set x = 5 %}{{ outer() }}",
    "{% set x = 1 %}{% macro m() %}{% set x = 2 %}{{ x }}{% endmacro %}{{ m() }}{{ x }}",
    "{% macro m() %}{% endmacro %}{{ m() is string }}{{ m()|length }}{% if m() %}x{% else %}y{% endif %}",
    "{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}{{ m(none) }}",
    "{% filter upper %}a{{ name }}{% endfilter %}{% filter replace('a', 'b')|upper %}aa{% endfilter %}",
    "{% with a = 1, b = number %}{{ a }}{{ b }}{% set a = 9 %}{{ a }}{% endwith %}{{ a is defined }}",
    "{% raw %}{{ not rendered }} {% if %}{% endraw %}|{%- raw -%}  x  {%- endraw -%}  y",
    "{% generation %}said {{ name }}{% set q = 1 %}{% endgeneration %}{{ q is defined }}",
    "{# a comment {{ x }} #}a{#- b -#} c {# d #}\ne",
    "a\n  {% if yes %}\n    b\n  {% endif %}\nc\n",
    "a\n  {%- if yes -%}\n    b\n  {%- endif -%}\nc\n",
    "a\n  {%+ if yes +%}\n    b\n  {%+ endif +%}\nc\n",
    "a  {{- name -}}  b {{ name }}\n\nc\n\n",
    "  {% set x = 1 %}  \n  {{ x }}  \n  {# c #}  \n x {% set y = 2 %}\n{{ y }}",
    "{% if yes %}\n\n{% endif %}\n{% for x in [1, 2] %}\n{{ x }}\n{% endfor %}\n",
    "line\r\nline\rline\n{% if yes %}\r\nx{% endif %}",
    "\u00a0{% if yes %}a{% endif %}\u3000{%- if yes %}b{% endif %}",
    "{{ '}}' }}{{ '{%' }}{{ {'a': {'b': 1}}['a']['b'] }}{{ {'a': {'b': 1}} }}",
    "{% set x = {'a': 1, 'b': {'c': 2}} %}{{ x.b.c }}",
    "{{ strftime_now('%d %b %Y') }}|{{ strftime_now('%A %B %d, %Y %H:%M:%S %j %y %I %p %%') }}|{{ strftime_now('%Y-%m-%d') }}|{{ strftime_now('%z%Z%f') }}",
    "{{ raise_exception('no ' ~ name) }}",
    "{{ dict(a=1, b='x') }}{{ dict([('k', 1)]) }}{{ dict({'q': 2}, r=3) }}",
    "{{ range(3)|list }}{{ range(0) | list }}{{ range(5)|last }}{{ range(4)|length }}",
    "{% if words %}a{% endif %}{% if [] %}b{% endif %}{% if {} %}c{% endif %}{% if 0.0 %}d{% endif %}{% if ' ' %}e{% endif %}",
    "{% if people|selectattr('age', 'gt', 99) %}always{% endif %}{% if people|selectattr('age', 'gt', 99)|list %}never{% endif %}",
    "{% set g = words|map('upper') %}{{ g|list|length }}{{ g|list|length }}",
    "{% set f = name.upper %}{{ f() }}",
    "{{ words|map('upper')|join(',') if words is iterable and words is not string else words }}",
    "{%- for person in people %}{{- '\\n' if not loop.first -}}{{ person.name|capitalize }} ({{ person['age'] }}){%- endfor %}",
    "{{ 'a' if missing is defined else 'b' }}{{ ('x' ~ 'y')|upper }}{{ -1|abs }}{{ 'a,b'.split(',')|length }}",
    "{% set loop_messages = people[1:] if people[0].name == 'bob' else people %}{{ loop_messages|length }}",
    "{% if (people|length % 2 == 1) != (loop_index0 is defined) %}odd{% endif %}",
    "{{ [1, 2, 3] | map('string') | map('upper') | list }}{{ point.y.z | select('number') | list }}",
    "{%- set ns = namespace(last=-1) -%}{%- for m in people[::-1] -%}{%- set index = (people|length - 1) - loop.index0 -%}"
    "{%- if ns.last == -1 and m.tags|length > 0 -%}{%- set ns.last = index -%}{%- endif -%}{%- endfor -%}{{ ns.last }}",
    "{% set x = [] %}{% set x = x + ['a'] %}{% set x = x + ['b'] %}{{ x }}",
    "{{ 'abc' ~ (1, 2) ~ {'a': (1,)} }}",
    "{% for key in point.keys() | sort %}{{ key }} {% endfor %}",
    "{% print name %}", "{{ }}", "{% if %}x{% endif %}", "{{ 1 + }}", "{% for x %}{% endfor %}", "{{ a b }}", "{% endif %}", "{{ 'abc }}",
    "{% if yes %}", "{{ (1 }}", "{{ [1, 2 }}", "{% nope %}", "{{ x|nope }}", "{{ x is nope }}", "{# open", "{% raw %} x", "{{ 1 }", "{% break %}",
    "{{ missing.x }}", "{{ missing() }}", "{{ missing + 1 }}", "{{ 'a' + 1 }}", "{{ 1 + 'a' }}", "{{ none + 1 }}", "{{ 1 / 0 }}", "{{ 1 % 0 }}", "{{ 1 < 'a' }}",
    "{{ name() }}", "{{ 5|length }}", "{{ none|length }}", "{{ 1 in 5 }}", "{{ 5 in 'a' }}", "{% for x in 5 %}{% endfor %}", "{% for a, b in [1] %}{% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}{% endfor %}", "{% set name.x = 1 %}", "{{ missing|tojson }}", "{{ range(200000)|length }}", "{{ point.items.x }}",
    "{{ name.nope() }}", "{{ point.nope() }}", "{{ {[1]: 2} }}", "{{ 'a'.join([1]) }}", "{{ 'a'.split('') }}", "{{ words[1:2:0] }}", "{{ m(1) }}",
    "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(b=2) }}", "{% macro m(a=1, b) %}{% endmacro %}", "{{ missing|int }}",
    "{{ words|sort(attribute='x')|list }}", "{{ [1, 'a']|sort }}", "{{ 'x'|join(1, 2, 3) }}", "{{ 2 ** 'a' }}", "{{ -'a' }}", "{{ 'a'|abs }}", "{% set true = 1 %}",
    "{{ loop }}", "{{ f(x=1, 2) }}", "{% call name %}{% endcall %}", "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}", "{{ '%d' % 'x' }}", "{{ '%s %s' % 'x' }}",
    "{{ {}|dictsort(by='x') }}", "{{ 1|round(method='x') }}", "{{ point|items|first|first }}", "{{ 1 if }}", "{{ not }}", "{{ 3 is divisibleby }}", "{{ 1|default(2, 3, 4) }}",
]


def snippets():
    lists = [LITERALS, OPERATORS, ACCESS, METHODS, FILTERS, TESTS]
    return [f"{{{{ {expression} }}}}" for group in lists for expression in group] + STATEMENTS
