"""Sentences with a secret, sentences that only look like it. All made up.

A `¦` stands in the tokens of known makers, so that no scanner takes this file for a leak; `cases` takes it out.
"""

from __future__ import annotations

SECRET = r"""
The wifi password is BlueHeron77.
wifi: network Heron, password BlueHeron77
The password for Dana's laptop is "open sesame".
My password for the gym portal is kettlebell9
Dana told me her Netflix password is Marigold!2024
Password for the shared account: Tr0ub4dor&3
The admin password was changed to N0rthStar#9 yesterday
remember that the router's admin password is admin1234
Log in with user dana and password s3same-street
use username: luis, password: Winter2025!
Creds: luis / Winter2025!
credentials for staging are deploy / k9-Harbor-22
login: cleo@example.org / Pa55w0rd!
The database password is still hunter2
db password = pg_7Hs2kQ9
passwd: x9!kd82
PIN for the alarm is 4821
My PIN is 7395
the door code is 4471#
The garage code: 90210
His card's PIN code is 0917
the safe code is 22-71-09
The passphrase for the SSH key is correct horse battery staple
ssh passphrase: lemon-Tree-Umbrella-9
Her password is swordfish.
The root password on the NAS is 'letmein99'
"qwerty123" is the password for the printer
hunter2 is my bank password
We use Summer2026! as the password for demo accounts
The API key for the weather service is 9f86d081884c7d659a2feaa0c55ad015
Weather API key: 9f86d081884c7d659a2feaa0
our Mem0 key is m0sk_a8f3kd92jf84hs72kd93
use the token 7d9f2c1b8e4a6f3d5c2b1a09 for the deploy hook
the client secret is Zx8kQ2mN4pR7sT1vW3yB6
Secret key: sk¦_9aK2mZ7qL4xR8vT1
export DB_PASSWORD=hunter2
DATABASE_URL=postgres://app:s3cr3tpw@db.internal:5432/app
redis://:p4ssw0rd9@cache:6379/0
https://dana:Kestrel99@git.example.org/repo.git
Authorization: Bearer 8f14e45fceea167a5a36dedd4bea2543
curl -u dana:Kestrel99 https://api.example.org
mysql -u root -pKestrel99 shop
sshpass -p Kestrel99 ssh root@10.0.0.2
{"user": "dana", "password": "Kestrel99"}
password: "Kestrel 99"
<password>Kestrel99</password>
| password | Kestrel99 |
**Password:** Kestrel99
- Password: kestrel
the password (for the VPN) is Kestrel99
My new password, which I set today, is Kestrel99
Password hint: none. Password: Kestrel99
card 4111 1111 1111 1111 exp 12/27
Visa: 4242424242424242
Her Amex is 3782 822463 10005
IBAN FR76 3000 6000 0112 3456 7890 189
send it to DE89370400440532013000
GB82 WEST 1234 5698 7654 32
seed phrase: legal winner thank year wave sausage worth useful legal winner thank yellow
recovery phrase for the wallet: abandon ability able about above absent absorb abstract absurd abuse access accident
Mot de passe : Soleil2024!
Le mot de passe du wifi est CheddarBleu42
le mot de passe de Luc est « azerty123 »
Le mot de passe de la box : tournesol
Mon mot de passe Netflix c'est Marguerite75
mdp: azerty
mdp wifi = Chamois-Bleu-12
MDP du compte admin : P@ssw0rd1
Identifiant : dana, mot de passe : Kestrel99
Identifiants : dana / Kestrel99
le code PIN de ma carte est 4821
Code PIN : 0917
le code de la porte est 45B12
Code du portail : 7391
le digicode est A4532
Le code du coffre est 887412
Le code wifi est ChamoisBleu12
la clé wifi est ChamoisBleu12
la phrase de passe est cheval correct pile agrafe
le nouveau mot de passe est maintenant Printemps#26
Le mot de passe reste hunter2
connecte-toi avec dana et Kestrel99!
Azerty2024 est le mot de passe du serveur
le mot de passe d'admin du NAS, à ne pas perdre, est Kestrel99
La clé d'API est 9f86d081884c7d659a2feaa0c55ad015
clé API : 9f86d081884c7d659a2feaa0
jeton : 7d9f2c1b8e4a6f3d5c2b1a09
le jeton d'accès est 7d9f2c1b8e4a6f3d5c2b1a09
Le secret du client est Zx8kQ2mN4pR7sT1vW3yB6
mot de passe:Kestrel99
Mot de passe root = toor1234
pass: Kestrel99
pw: Kestrel99
user dana pass Kestrel99
User/pass: dana/Kestrel99
the p‸assword is Kestrel99
ｐａｓｓｗｏｒｄ: Kestrel99
pаsswоrd is Kestrel99
password%3A%20Kestrel99
The password: Kestrel99 (don't share)
Das Passwort ist Sommer99
La contraseña es Verano2024
api_key="abcd1234efgh5678ijkl"
AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzKEY1
SECRET_KEY='n&8s!kq2z@x0v%f4'
session token: 3c59dc048e8850243be8079a5c74d079
the license key is ABCD-1234-EFGH-5678-IJKL
Windows product key: VK7JG-NPHTM-C97JM-9MPGT-3V66T
2FA backup codes: 8f3a-19bc, 77de-02af
private key: 0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318
Dana's Spotify login is dana@example.org and the password is Tulip-Grove-44.
Note to self: bank password = Orchid$991
He uses the same password everywhere: maverick1986
Acme's VPN: user acme-guest, pass Gu3st!Pass
Their guest network password is welcome2acme
The team agreed that the new root password would be Basalt+Quartz7
For the demo, the password stays demo1234.
To unlock the zip file use the password papaya42
The zip's password: papaya
password for archive.zip -> papaya42
I told Luis the password (it's Juniper_58)
Luis asked for the password and I gave him Juniper_58
the password of the old laptop was Zebra!stripe
Server: 10.0.0.5, root / Qz7!mountain
ssh root@10.0.0.5 (password: Qz7mountain)
ftp login anna, pwd S0leil
PASSWORD: SUNSHINE99
Password = "trustno1"
passcode for the meeting: 883201
Zoom passcode: 7Hk2pQ
voicemail PIN: 5512
SIM PIN 1234, PUK 12345678
The alarm code was changed to 9921.
gate code is 1379#
bike lock code: 4-7-1-9
CVV is 123
OpenAI key: sk¦-proj-abcDEF0123456789abcDEF0123456789abcDEF0123456789
GitHub token gh¦p_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8
Mem0 admin key m0sk_9f8e7d6c5b4a39281706f5e4
the Mem0 key "m0sk_Zk39dkWq02lskd93kdlsQ" is for staging
stripe: sk¦_live_4eC39HqLyjWDarjtT1zdp7dc
slack bot token xo¦xb-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx
google maps key AI¦zaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q
X-Api-Key: 2f1d8e7c6b5a4039281706f5e4d3c2b1
jdbc:postgresql://db/app?user=app&password=Kx82hdQ1
mongodb+srv://app:Kx82hdQ1@cluster0.abcde.mongodb.net
Server=db;Database=app;User Id=app;Password=Kx82hdQ1;
Account¦Key=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==
webhook secret wh¦sec_5WbX5kEWLlfzsGNjH64I8lOOqUB6e8FH
cookie_secret: 'k3-xV0!pQz8@rT2'
The encryption key is 000102030405060708090a0b0c0d0e0f
JWT ey¦JhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.ey¦JzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U
Mastercard 5555-5555-5555-4444
carte bancaire 5105 1051 0510 5100, exp 09/27
Son IBAN : FR14 2004 1010 0505 0001 3M02 606
IBAN: NL91ABNA0417164300
BE68 5390 0754 7034 is her account
Le mot de passe Wi-Fi des invités : Bienvenue75!
Pour le NAS, le mot de passe est resté "tourteau"
J'ai changé mon mot de passe Amazon, c'est maintenant Fenouil#38
Mon mot de passe est le suivant : Fenouil#38
Luc m'a donné le mot de passe du partage : Fenouil38
le mdp du serveur c'est toto1234
mdp : Fenouil
Le mot de passe de la messagerie d'Anne est fenouil.
identifiant anne, mot de passe Fenouil#38
Compte démo : demo / Demo2024!
utilisateur : root / mot de passe : calamar
Le code de l'alarme est le 4521
code d'entrée immeuble : 23A45
Digicode : 75B01
le code secret de sa carte est 4521
Code de déverrouillage du téléphone : 258014
Clé secrète : 7d9f2c1b8e4a6f3d5c2b1a09
La clé de licence est 7D9F2-C1B8E-4A6F3-D5C2B-1A09Z
le jeton GitLab est gl¦pat-AbCdEf12345678901234
pass‸word: Kest‸rel99
the passw0rd is Kestrel99
Passwort: Herbst2025!
𝗽𝗮𝘀𝘀𝘄𝗼𝗿𝗱: Kestrel99
bW90IGRlIHBhc3NlIDogS2VzdHJlbDk5IQ==
Reminder: Luis's Dropbox password is now caramel_Lion3.
the new password for billing@acme.example is "Vitrine 2026"
Acme SFTP -> host sftp.acme.example, user acme_ro, password h7Kp!2wQ
I always use kitten123 as my password.
He typed his password, dragonfly88, in the chat by mistake.
Their portal password hasn't changed: Welcome@Acme1
To log into the TV: email anna@example.org, password toucan-42
Parking gate PIN: 2580
Building access code: 45A19
Passphrase for backups: violet piano harbour seventeen
The BitLocker recovery key is 123456-234567-345678-456789-567890-678901-789012-890123
My wallet seed: ripple scissors kick mammal hire column oak again sun offer wealth tomorrow
use this API key: 4f8a2c9d7e1b6035af92cd84e07b1f36
the webhook's signing secret is 4f8a2c9d7e1b6035af92
HF_TOKEN=hf¦_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh
set ANTHROPIC_API_KEY to sk¦-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKlMnOp
mem0: key m0sk_1a2B3c4D5e6F7g8H9i0J1k2L
our GitLab deploy token is gl¦dt-aBcDeFgHiJkLmNoPqRsT
Bearer token: ey¦JhbGciOiJIUzI1NiJ9.ey¦J1c2VyIjoiZGFuYSJ9.c2lnbmF0dXJlc2lnbmF0dXJl
amqp://svc:Tr4mp0line@mq.internal:5672/
https://anna:kitten123@wiki.example.org
Set-Cookie: session=4f8a2c9d7e1b6035af92cd84e07b1f36
her Visa 4539 1488 0343 6467 expires in May
pay with 6011111111111117
IBAN of Acme: GB29 NWBK 6016 1331 9268 19
the rent goes to ES91 2100 0418 4502 0005 1332
Le mot de passe du compte Orange est resté Camembert8!
Le nouveau mot de passe de la salle de réunion est « Bleu Canard 9 ».
Pense-bête : mdp Impôts = Fraise!1975
mot de passe session : luciole
Son mot de passe, c'est tomate42.
On se connecte avec admin / Admin@2025
Login : prof, mdp : eleve2024
Code de l'immeuble : 18B47
le code d'accès au parking est 2580
Le PIN du téléphone de maman est 1948
code de la carte bleue : 7361
La clé API de Brevo est xk¦eysib-4f8a2c9d7e1b6035af92cd84e07b1f364f8a2c9d7e1b6035af92cd84e07b1f36-AbCdEfGhIjKlMnOp
le secret OAuth est 4f8a2c9d7e1b6035af92cd84
voici la clé privée : -----BEGIN EC PRIVATE¦ KEY-----MHcCAQEEIIrYSSNQFaA2Hwf1duRSxKtLY-----END EC PRIVATE¦ KEY-----
pass‸phrase : violet-Piano-7
ＭＤＰ： Fraise!1975
mоt de pаsse : Fraise!1975
password=Kestrel%2199
curl -u "k7Pq2LxZ9vTb:" https://api.example.org/v1
curl --user "{4f0c2a7e-deploy}":"{Hk29ZqXw71Lm4Ty}" https://api.example.org
if (request.secret !== "x" || creds.Secret != "tulip-orchard") deny();
credentials { username 'ci-bot' password 'welcome' }
$mail->Password = 'welcome';
new DirectoryEntry("LDAP://10.0.0.4", "acme\\dana", "welcome")
postmark: "1f3c8a52-9d07-4e6b-8c41-7a2b5d90e3f6"
sonar.login', '3b7e1f90c4a25d86e1b07f93a4c52d68e0f1b739
the deploy role is arn:aws:iam::210987654321:role/acme-deploy
arn:aws:s3:::acme-payroll/*
aws_account_id=210987654321
backups go to acme-payroll.s3.eu-west-3.amazonaws.com
s3.amazonaws.com/acme-payroll
acme-media.storage.googleapis.com
client id 104857600123-9k2lq0vw7x3c5b8n1m4z6a2s0d7f9g1h.apps.googleusercontent.com
"type": "service_account", "project_id": "acme"
REACT_APP_ADMIN_USERNAME=dana
TWITTER_KEY: "Qm3xLz81VtYw0KpRs72d"
"""

HONEST = r"""
csrf_token = "9f86d081884c7d659a2feaa0"
public_token: "7d9f2c1b8e4a6f3d5c2b1a09"
secret_id=7d9f2c1b8e4a6f3d5c2b1a09
next_page_token: 7d9f2c1b8e4a6f3d5c2b1a09
api_key_hash = 9f86d081884c7d659a2feaa0c55ad015
The password must have at least 12 characters.
Password: required
Dana forgot her password again.
We store passwords as argon2id hashes.
The password is stored in Bitwarden.
Ask Luis for the password.
The password is the same as last year.
The password expires in 90 days.
Passwords are rotated every quarter.
The wifi password is on the fridge.
the password is wrong
The password was changed on 2026-03-04.
My password manager is 1Password.
Reset your password at https://example.org/reset?step=2
the password policy: 12 characters, one digit, no reuse
She prefers passkeys to passwords.
The password field has a bug: pasting does not work.
The token budget is 2000.
token count: 1,204
tokens: 4096
Each API key belongs to a tenant.
The API key is rotated monthly.
The secret ingredient is cardamom.
secret: she loves karaoke
The key insight: caching helps.
Key: Dana is the contact person.
key decision: move to Postgres 18
The session token is kept in memory only.
commit 85ba5ed1f0c2d3e4a5b6c7d8e9f0a1b2c3d4e5f6
See mem_4kq2w8e5r7t3y1m9 for details.
nas://home-box/agents/cleo/journal/2026-10-02.md@9f2c1de#L12-L18
sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
Order 4111-2222-3333-4445 was shipped.
Tracking number 1Z999AA10123456784
ISBN 978-3-16-148410-0
Call me at +33 6 12 34 56 78.
UUID 123e4567-e89b-12d3-a456-426614174000
Release v2.14.3-rc1 is out.
The PIN pad is broken.
Pin this message.
The code is in src/main.py.
The code review is at 10:30.
zip code: 75011
code postal : 75011
The error code is 404.
country code is 33
Le code du travail est long.
Le code est prêt.
Le mot de passe doit contenir 12 caractères.
Le mot de passe est obligatoire.
Le mot de passe est expiré.
J'ai oublié mon mot de passe.
Le mot de passe est stocké dans Bitwarden.
mot de passe oublié ?
Le mot de passe a été changé le 2 octobre 2026.
Mot de passe : à demander à Luc
Le mot de passe est le même que l'an dernier.
Le mot de passe est inscrit sur le frigo.
Mot de passe incorrect : 3 essais restants
Le jeton expire après 15 minutes.
la clé du succès : la patience
La clé est sous le paillasson.
Les clés d'API sont renouvelées chaque mois.
secret : elle adore le karaoké
Son login est dana.
login: dana
Username: dana
Account: Dana Smith, 12 Main Street
account 12345, balance 300.50
The account manager is Luis (ext. 4471).
user: dana, role: admin
username and password are required
password=${DB_PASSWORD}
password: {{ vault_password }}
DB_PASSWORD=<your-password>
password = os.environ["DB_PASSWORD"]
password = getpass.getpass()
def login(user, password):
api_key = settings.API_KEY
token = request.headers.get("X-Token")
const token = await getToken();
API_KEY=your_api_key_here
PASSWORD=changeme
password: ********
password: xxxxxxxx
Use `--password` to pass one.
set the env var OPENAI_API_KEY
OPENAI_API_KEY=$OPENAI_API_KEY
The access token lives for 3600 seconds.
access_token_lifetime: 3600
max_tokens: 4096
primary_key: id
public key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGx7Zk0cW7n9mJx1o0S7lq0m2l3p4
keyboard: ISO layout
She passed the exam: 95 points.
He gave me a pass: Friday 10:00.
The boarding pass is on my phone.
pass rate: 87%
Passport renewal is due 2027-04-01.
the patent number is US10234567B2
Author: Dana
Authorization is decided by OpenFGA.
authentication: OIDC with Okta
Basic income is a topic she likes.
basic auth is off
Bearer of bad news
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk
The meeting id is 845 1234 5678.
GPS 48.8566, 2.3522
1700000000000 is the timestamp
IBAN is needed for the refund.
IBAN FR76 3000 6000 0112 3456 7890 188
4111 1111 1111 1112 is not valid
The card ends in 4242.
version 4.2.4.2
She knows the secret handshake.
the secret to a good risotto is stirring
My favourite password joke: 'incorrect'.
The password prompt says "Enter password:".
choose a strong password such as a passphrase of four words
The login page is at /login?next=/home
Le compte de Dana est clôturé depuis 2023.
compte : 512 Banque
compte rendu du 12/03/2026 : validé
The account was opened on 2021-05-03 and 12 people use it.
Sign in with Google is broken since v2.3.
log in with your work email
recovery: walk 30 minutes, stretch, drink water, sleep early, eat well, rest, breathe, call mum
Seed phrase storage is explained in the wiki.
backup codes are printed
Unlock code is needed after a reboot.
access code policy: six digits
dress code: casual
Morse code is fun: 3 dots
QR code: scan it at the door
promo code SUMMER25 gives 20 percent
Le code promo est ETE2025.
reference code: AB-2231
The conference code name is Bluebird.
hash of the file: d41d8cd98f00b204e9800998ecf8427e
etag "33a64df551425fcc55e4d42a148795d9f25f89d4"
s3://acme-logs/2026/10/02/part-0001.parquet
docker image sha256:4bf3f1b2b0b822cd15d6c15b0f00a089f86d081884c7d659a2feaa0c55ad015a
The Slack channel is #acme-renewal.
monkey: 3 bananas
donkey=grey
turkey: 12 lb
hockey=fun
token ring network
Passau is a town.
compass: north
bypass surgery 2019
encompass: everything
The password-less login works since 2.1.0
Password rules at Acme: at least 14 characters, changed yearly.
Please never write the password in a note.
The password for the VPN is managed by IT.
My password is too long to type on a TV.
The root password is not known to anybody.
The admin password is rotated by cron.
Her password is a quote from Hamlet.
The password was leaked in 2021.
His password is weak, he should change it.
The password is sent by SMS.
Password: see Bitwarden
Password: ask Dana
password: n/a
password: null
password: optional, defaults to the user's name
The password is case-sensitive.
Passwords: 3 of 12 were reused
Password length: 16
Password reset: 2026-05-01
Password manager: KeePassXC 2.7
Password last changed: 2026-05-01
password attempts left: 3
minimum password age: 1 day
We discussed passwords, tokens and keys on 2026-02-11.
Token expiry: 3600 s
Token price: 0.42 USD
Tokens per second: 43.2
token usage 12,345 in / 3,210 out
Token type: Bearer
The token is a JWT signed with RS256.
Secret Santa budget: 20 EUR
Secret rotation: every 90 days
The secret is stored in openbao://kv/acme/mem0
credential_ref: env://EAI_CRED_MEMORY_MEM0_API_KEY
api key: stored in OpenBao
API key id: key_2024_prod_01
api_key_salt is generated at install time
Keys: C, D minor, F#
Key takeaways: 1) ship 2) measure
key results Q3: NPS 42, churn 2.1%
Key stakeholders: Dana, Luis, Anne
partition key = customer_id
primary key: (tenant, id)
foreign key customer_id -> customers.id
Answer key: 1b 2c 3a 4d
hotkey: ctrl+shift+p
SSH key fingerprint SHA256:uNiVztksCsDhcc0u9e8BgrJXVGDJGV5x
public key id 0x9F86D081
auth: oauth2
author: anne@example.org
license: MIT
License: Apache-2.0
licence: CC BY-NC 4.0
The licence number of the plumber is 123456.
flight LH1234 seat 12A, booking ref X7K2PQ
Booking code: ABC123
Room code name: Aurora
Coupon code is SPRING26
Error code: E1234
HTTP code: 404
The postcode is SW1A 1AA.
Country code: +33
the source code is at https://example.org/repo
area code 212
sort code 20-00-00 is in the bank letter
Le code source est sur le serveur.
Le code NAF est 6201Z.
code APE : 6201Z
Code client : 48213
code commune 75056
Le code de la route a changé en 2024.
numéro de compte client : 48213
Le mot de passe n'est pas noté ici.
Le mot de passe est à changer tous les 90 jours.
Mot de passe : voir Bitwarden
Le mot de passe du wifi est sur la box.
Mot de passe : 12 caractères minimum
Le mot de passe a fuité en 2021.
Son mot de passe est une citation de Racine.
Le mot de passe est envoyé par SMS.
Le mot de passe est partagé avec l'équipe.
mot de passe : non communiqué
Les jetons coûtent 2 euros.
Jeton expiré : reconnectez-vous
Le secret du chef : un peu de cumin.
identifiant : anne
Identifiant client : 48213-FR
Compte : 411000 Clients
compte à vue, solde 1234,56
Accès : badge 12, étage 3
connexion : 250 Mb/s
Anne se connecte avec Google depuis 2024.
login: with Google
logged in at 10:32, left at 11:05
logins: 42 today
auth/ directory has 12 files
Account: 12 users, plan Pro
accounts: Acme (EUR 120k), Globex (EUR 80k)
acc. to Luis: 42 tests fail
Card: 4 of clubs
card ending 4444
the number 4242424242424243 fails Luhn
order 5555-1234-5678-9012
1234567890123456
3.14159265358979323846
20261002091233123456
pi = 3141592653589793
Build 4111111111111111a failed
phone 0612345678
SIREN 732 829 320
SIRET 73282932000074
VAT FR40303265045
DE123456789
invoice FR2026-000123456789012345
ref FR76 is the prefix
PIN: none
Pinned: 3 notes
pin 3 of the chip is ground
The pin is made of steel: 40 mm
pinned version: 2.3.0
nip: 1.2.3.4.nip.io
The recovery phrase is kept by a notary.
recovery code path tested
backup codes: printed in the safe
seed phrase length: 12 or 24 words
words per minute: 72
x-request-id: 4bf92f3577b34da6a3ce929d0e0e4736
traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
git clone git@example.org:acme/app.git
ssh://git@example.org:22/acme/app.git
http://localhost:8080@8f2
mailto:anne@example.org
https://example.org/?page=2&sort=key
https://example.org/cb?state=xyz&code=42
price: $12$15$20
LaTeX $x$y$z$
$HOME/bin and $PATH
The bearer plan costs 12 EUR.
authorization: pending since 2026-01-01
basic: 12, pro: 40
machine learning login page
mysql -p asks for one
docker login -p is deprecated
curl -u needs a user
wget --password=PROMPT
the Authorization header is dropped on redirect
base64: SGVsbG8gV29ybGQsIHRoaXMgaXMgYSBub3Rl
W5vIHNlY3JldHMgaGVyZSwganVzdCBhIG5vdGUgYWJvdXQgdGhlIHdlYXRoZXI=
https://example.org/a%20b%20c?q=hello%20world
chapter 3: the password
The team wants single sign-on instead of passwords by June.
Anna's password habits are poor; she reuses them.
Password spraying was seen on 2026-08-14 from 12 addresses.
The password hash algorithm is argon2id with 64 MiB.
A password of 8 characters falls in 2 hours.
Password fields: name, length, last_changed
The Wi-Fi password is printed on the router.
Wi-Fi: password on the back of the menu
Ask for the password at the desk.
Password was correct, second factor failed.
password accepted
password => string, min 12
"password": {"type": "string", "minLength": 12}
password_hash TEXT NOT NULL
if not password: raise ValueError("password is empty")
self.password = password
password = input("Password: ")
PGPASSWORD is read from the environment
--password-stdin is safer
use `gh auth token` to print it
The token endpoint is https://id.example.org/oauth2/token
refresh tokens live 30 days, access tokens 15 minutes
10 tokens per minute
the token "foo" is a keyword in the grammar
tokenizer: cl100k_base
secret management: OpenBao 2.4
Secrets are sealed at install time.
trade secret
secretary: Paula Jones, +33 1 45 67 89 10
API keys page: /settings/keys
The API key must be set before 2026-11-01.
KEY_COUNT=12
key: customer/acme
keys() returns 3 items
foreign key on tenant_id
sort_key: recorded_at
The map key shows 5 colours.
Florida Keys trip 2025
keynote at 9:30
piano key of C major
unlock level 12 in the game
credential helper: osxkeychain
credentials are in ~/.aws/credentials
Authorization: Bearer <token>
Authorization header missing, 401
auth_service v1.8.2 deployed
The PIN code field accepts 6 digits.
pin: none set
code: 200
code = 42
Code: AB12CD34 is the invite's name in the docs?
discount code WELCOME10
project code: ACM-2026-014
The course code is CS101.
barcode 4006381333931
EAN 5901234123457
order id 6011-0009-9013-9424-1
Invoice 2026-0415 of 4 539,14 EUR
customer no. 37144963539843
the account was closed on 2025-12-31
account: savings, 12,500.00
login count: 42
login page v2
Login: use SSO
identifiants perdus : contacter le support
Le mot de passe oublié a été réinitialisé hier.
Changer de mot de passe tous les 6 mois est inutile.
Le mot de passe ne doit jamais être noté.
Mot de passe robuste : longueur, unicité
mot de passe = chaîne de caractères
Le mot de passe est celui de 2024, demander à Luc
Le code civil compte 2534 articles.
code couleur : 0044FF
Code : voir README
le code du projet est ACM-2026-014
Le secret médical est protégé.
clé USB : 64 Go
clé de voûte : la confiance
Clés de répartition 2026 : 40/60
La clé primaire est (tenant, id).
Jetons de présence : 1200 EUR
jeton d'accès : durée 15 min
Compte de résultat 2025 : 1 234 567 EUR
compte Twitter : @acme_fr
accès : 2e étage, porte 12
phrase : sujet, verbe, complément
La phrase de passe est stockée chez le notaire.
numéro de sécurité : à venir
sha1 da39a3ee5e6b4b0d3255bfef95601890afd80709
md5: 9e107d9d372bb6826bd81d3542a419d6
blob 85ba5ed1f0c2d3e4a5b6c7d8e9f0a1b2c3d4e5f6 is cited
session 01JABCDEFGHJKMNPQRSTVWXYZ0 was tainted
trace_id=4bf92f3577b34da6a3ce929d0e0e4736
ETag: W/"0815"
color #a1b2c3
magnet:?xt=urn:btih:c12fe1c06bba254a9dc9f519b335aa7c1367a88a
https://drive.example.org/file/d/1AbCdEfGhIjKlMnOpQrStUvWxYz/view
https://youtu.be/dQw4w9WgXcQ
https://example.org/invite/AbCdEf123456
spotify:track:4cOdK2wGLETKBW3PvgPWqT
S/N C02XK0ABJGH5
IMEI 490154203237518
MAC 00:1A:2B:3C:4D:5E
VIN 1HGBH41JXMN109186
https://acme-media.s3.amazonaws.com/2026/10/logo.png
https://storage.googleapis.com/acme-media/logo.png
attach arn:aws:iam::aws:policy/ReadOnlyAccess to it
f"arn:aws:s3:::{bucket}"
S3 (amazonaws.com) is down in one region
sg¦p_48d7a9b3c1d5e8f2a6_9c3b1f70e5d284a6b9c01f7e3d52a8b4c6f0e917
sk¦-ant-api03-k2Lq9-Zx7vT4-wP1mB8-nR5sY3-cF6dG0-hJ2kL4
AI¦zaTyDNk3pQ9xL2mV7wR5tB8cF1gH4jZ0sY6aE
GR¦134894145645645645645645645
export OP_SERVICE_ACCOUNT_TOKEN=ops_ey¦JzaWduSW5BZGRyZXNzIjoiaHR0cHM6Ly9h...
curl -u "dana:" https://example.org
REACT_APP_USER_URL=$BASE/users
if token != "Bearer": raise ValueError
The token endpoint is https://id.example.org/oauth2/token, curl http://127.0.0.1:5000/file --digest
The API key is /run/keys/x9f3b2c47dd18a
token: ../keys/x9f3b2c47dd18a
"""


def cases(block: str) -> list[str]:
    """One text a line; `‸` is a zero-width space."""
    return [line.replace("¦", "").replace("‸", "\u200b") for line in block.strip("\n").split("\n")]
