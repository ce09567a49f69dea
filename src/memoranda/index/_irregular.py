"""Words that a stemmer cannot bring together: irregular forms, number words, spellings.

Each line lists a word and the forms that mean it, in folded form. A form that is also a common word of its own
(`left`, `bit`, `rose`, the French `lit`) is left out: a wrong union hides more than a missing one.
"""

from __future__ import annotations

_ENGLISH = """
arise arose arisen
become became
begin began begun
bend bent
blow blew blown
break broke broken
bring brought
build built
buy bought
catch caught
choose chose chosen
come came
deal dealt
dig dug
draw drew drawn
drink drank drunk
drive drove driven
eat ate eaten
fall fell fallen
feed fed
feel felt
fight fought
find found
fly flew flown
forget forgot forgotten
forgive forgave forgiven
freeze froze frozen
get got gotten
give gave given
go went gone
grow grew grown
hang hung
hear heard
hide hid hidden
hold held
keep kept
know knew known
lead led
learn learnt
lend lent
lose lost
make made
mean meant
meet met
mistake mistook mistaken
overcome overcame
pay paid
ride rode ridden
ring rang rung
rise risen
run ran
say said
see saw seen
seek sought
sell sold
send sent
sew sewn
shake shook shaken
shine shone
shoot shot
show shown
shrink shrank shrunk
sing sang sung
sink sank sunk
sit sat
sleep slept
speak spoke spoken
spend spent
spin spun
stand stood
steal stole stolen
stick stuck
strike struck
swear swore sworn
sweep swept
swim swam swum
swing swung
take took taken
teach taught
tear tore torn
tell told
think thought
throw threw thrown
understand understood
undertake undertook undertaken
undergo underwent undergone
wake woke woken
wear wore worn
win won
withdraw withdrew withdrawn
write wrote written
rewrite rewrote rewritten
rebuild rebuilt
child children
man men
woman women
foot feet
tooth teeth
mouse mice
person people
knife knives
wife wives
wolf wolves
shelf shelves
2 two
3 three
4 four
5 five
6 six
7 seven
8 eight
9 nine
10 ten
11 eleven
12 twelve
february feb
august aug
september sept
october oct
november nov
december dec
favorite favourite
color colour
neighbor neighbour
behavior behaviour
honor honour
labor labour
flavor flavour
center centre
theater theatre
gray grey
program programme
organize organise
realize realise
recognize recognise
apologize apologise
practice practise
travel travelled travelling
cancel cancelled cancelling
jewelry jewellery
catalog catalogue
dialog dialogue
"""

_FRENCH = """
aller vais vas va allons allez vont irai ira iras irons iront irait
boire boit buvons boivent
devoir dois doit devons doivent
dire dit disent disait
ecrire ecris ecrit ecrivent ecrivait
envoyer enverra enverrai
lire lisent lisait
mettre mettent mis mise
mourir meurt meurent
naitre nee nees naquit
ouvrir ouvert ouverte ouverts ouvertes
offrir offert offerte
prendre prend prends prennent pris prise
apprendre apprend apprends apprennent appris
comprendre comprend comprends comprennent compris
recevoir recois recoit recu recue recus
savoir sais sait savent saura
tenir tiens tient tiennent tenu
obtenir obtiens obtient obtiennent obtenu
venir viens vient viennent venu venue viendra
devenir deviens devient deviennent devenu devenue
revenir reviens revient reviennent revenu
vivre vit vivent vecu
voir vois voit voient verra verrai
vouloir veux veut veulent voulu voudrait voudrais
oeil yeux
2 deux
3 trois
4 quatre
5 cinq
6 six
7 sept
8 huit
10 dix
11 onze
12 douze
"""


def _forms(lists: str) -> dict[str, str]:
    return {form: word for word, *forms in (line.split() for line in lists.strip().splitlines()) for form in forms}


ENGLISH = _forms(_ENGLISH)
FRENCH = _forms(_FRENCH)
